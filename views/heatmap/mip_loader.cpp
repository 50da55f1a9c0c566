// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/mip_loader.h"

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "views/common/paths.h"
#include "views/heatmap/step_map_canvas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr std::int64_t slice_rows = 1 << 14;

std::vector<float> read_rows(const TraceReader& reader, const MipRequest& request, std::int64_t begin,
                             std::int64_t end) {
    auto chunk = reader.signal(request.run.run, request.sequence->sequence, request.info.name, begin, end);
    if (!chunk || chunk->shape.empty() || chunk->shape.front() <= 0) {
        return {};
    }
    const auto rows = static_cast<std::size_t>(chunk->shape.front());
    const auto& steps = request.sequence->tokens.steps;
    const std::size_t first = std::min(static_cast<std::size_t>(begin), steps.size());
    const std::size_t last = std::min(first + rows, steps.size());
    chunk->first = 0;
    std::vector<float> values =
        request.pick(std::move(*chunk), {steps.begin() + static_cast<std::ptrdiff_t>(first),
                                         steps.begin() + static_cast<std::ptrdiff_t>(last)});
    if (request.info.of_target && !is_real(request.info.dtype)) {
        // 0 says that the token was not scored, below that, that the step did not run.
        std::replace_if(
            values.begin(), values.end(), [](float rank) { return rank < 1; },
            std::numeric_limits<float>::quiet_NaN());
    }
    return values;
}

std::shared_ptr<const MipPyramid> pyramid_of(const MipRequest& wanted, const std::stop_token& stop,
                                             const std::function<void(std::int64_t percent)>& tell) {
    const auto rows = static_cast<std::int64_t>(wanted.sequence->tokens.size());
    const TraceReader reader = TraceReader::open(path_of(wanted.run.trace));
    std::optional<MipPyramid::Builder> builder;
    std::int64_t told = -1;
    for (std::int64_t begin = 0; begin < rows; begin += slice_rows) {
        if (stop.stop_requested()) {
            throw Cancelled();
        }
        const std::int64_t end = std::min(begin + slice_rows, rows);
        const std::vector<float> values = read_rows(reader, wanted, begin, end);
        if (values.empty()) {
            break; // what is still being recorded ends here
        }
        if (!builder) {
            builder.emplace(rows, static_cast<std::int64_t>(values.size()) / (end - begin));
        }
        std::vector<std::int32_t> executed(static_cast<std::size_t>(end - begin),
                                           std::numeric_limits<std::int32_t>::max() - 1);
        if (wanted.rows == StepMap::Rows::steps) {
            const auto& steps = wanted.sequence->tokens.steps;
            std::copy(steps.begin() + begin, steps.begin() + end, executed.begin());
        }
        builder->add(values, executed);
        if (const std::int64_t now = end * 100 / rows; now != told) {
            told = now;
            tell(now);
        }
    }
    if (!builder) {
        throw InputError(path_of(wanted.run.trace), "values of \"" + wanted.info.name + "\"", "none",
                         "record the run again");
    }
    return std::make_shared<const MipPyramid>(std::move(*builder).finish());
}

bool is_same_map(const MipRequest& a, const MipRequest& b) {
    return a.sequence && b.sequence && a.run == b.run && a.sequence->sequence == b.sequence->sequence &&
           a.sequence->tokens.size() == b.sequence->tokens.size() && a.info.name == b.info.name &&
           a.what == b.what;
}

} // namespace

MipLoader::MipLoader(StepMapCanvas& canvas, QObject* parent)
    : QObject(parent), canvas_(canvas), building_(this), paging_(this) {
    connect(&canvas_, &StepMapCanvas::viewChanged, this, &MipLoader::wantPage);
}

bool MipLoader::show(MipRequest request) {
    const bool known = is_same_map(request_, request);
    request_ = std::move(request);
    if (known) {
        put();
        return mips_ != nullptr;
    }
    building_.cancel();
    paging_.cancel();
    mips_.reset();
    page_.reset();
    asked_ = {-1, -1};
    canvas_.setHint(u"Preparing the overview of this long sequence…"_s);
    canvas_.setMap(nullptr);
    building_.start(
        [this, wanted = request_](const std::stop_token& stop, const Task::Tell& tell) {
            return pyramid_of(wanted, stop, [&](std::int64_t percent) {
                tell([this, percent] {
                    canvas_.setHint(u"Preparing the overview of this long sequence… %1 %"_s.arg(percent));
                });
            });
        },
        [this](std::shared_ptr<const MipPyramid> mips) {
            mips_ = std::move(mips);
            put();
        },
        [this](const QString& sentence) { canvas_.setHint(sentence); });
    return false;
}

void MipLoader::cancel() {
    building_.cancel();
    paging_.cancel();
    request_ = {};
    mips_.reset();
    page_.reset();
}

void MipLoader::put() {
    if (mips_) {
        canvas_.setMap(std::make_shared<const StepMap>(request_.sequence, mips_, page_, request_.info,
                                                       request_.attribution, request_.rows));
        Q_EMIT shown();
    }
}

void MipLoader::wantPage() {
    const StepMap* map = canvas_.map();
    if (map == nullptr || !mips_ || canvas_.tokensPerPixel() >= static_cast<double>(4 * MipPyramid::base)) {
        return;
    }
    const auto first = static_cast<std::int64_t>(canvas_.viewFirst());
    const auto last = static_cast<std::int64_t>(canvas_.viewLast()) + 1;
    const std::int64_t room = (last - first) / 2 + 64; // to pan in without reading again
    const std::pair wanted{std::clamp<std::int64_t>(first - room - 1, 0, mips_->rows()),
                           std::clamp<std::int64_t>(last + room, 0, mips_->rows())};
    if (map->exact(first, last) || wanted == asked_) {
        return;
    }
    asked_ = wanted;
    paging_.start(
        [request = request_, wanted](const std::stop_token&) {
            const TraceReader reader = TraceReader::open(path_of(request.run.trace));
            return std::make_shared<const StepMap::Page>(
                StepMap::Page{wanted.first, read_rows(reader, request, wanted.first, wanted.second)});
        },
        [this](std::shared_ptr<const StepMap::Page> page) {
            page_ = std::move(page);
            put();
        },
        [](const QString&) {}); // the overview stays
}

} // namespace ponderscope
