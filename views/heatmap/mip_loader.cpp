// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/mip_loader.h"

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "views/common/paths.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

} // namespace

void MipLoader::start(MipRequest request) {
    cancel();
    request_ = std::move(request);
    building_.start(
        [this, wanted = request_](const std::stop_token& stop, const Task::Tell& tell) {
            const auto rows = static_cast<std::int64_t>(wanted.sequence->tokens.size());
            const std::string key =
                mip_key(path_of(wanted.run.trace),
                        std::to_string(wanted.run.run) + " " + std::to_string(wanted.sequence->sequence) +
                            " " + std::to_string(rows) + " " + wanted.info.name + " " + wanted.what);
            const std::filesystem::path sidecar = mip_sidecar(key);
            if (auto known = MipPyramid::read(sidecar, key); known && known->rows() == rows) {
                return std::make_shared<const MipPyramid>(std::move(*known));
            }
            const TraceReader reader = TraceReader::open(path_of(wanted.run.trace));
            std::optional<MipPyramid::Builder> builder;
            int told = -1;
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
                if (const int now = static_cast<int>(end * 1000 / rows); now / 10 != told) {
                    told = now / 10;
                    tell([this, now] { Q_EMIT progressed(now); });
                }
            }
            if (!builder) {
                throw InputError(path_of(wanted.run.trace), "values of \"" + wanted.info.name + "\"", "none",
                                 "record the run again");
            }
            MipPyramid made = std::move(*builder).finish();
            (void)made.write(sidecar, key); // without a cache it is made again next time
            return std::make_shared<const MipPyramid>(std::move(made));
        },
        [this](std::shared_ptr<const MipPyramid> mips) {
            mips_ = std::move(mips);
            Q_EMIT ready();
        },
        [this](const QString& sentence) { Q_EMIT failed(sentence); });
}

void MipLoader::cancel() {
    building_.cancel();
    paging_.cancel();
    mips_.reset();
}

void MipLoader::page(std::int64_t first, std::int64_t last) {
    if (!mips_) {
        return;
    }
    first = std::clamp<std::int64_t>(first, 0, mips_->rows());
    last = std::clamp<std::int64_t>(last, first, mips_->rows());
    paging_.start(
        [wanted = request_, first, last](const std::stop_token&) {
            const TraceReader reader = TraceReader::open(path_of(wanted.run.trace));
            auto page = std::make_shared<StepMap::Page>();
            page->first = first;
            page->values = read_rows(reader, wanted, first, last);
            return std::shared_ptr<const StepMap::Page>(std::move(page));
        },
        [this](std::shared_ptr<const StepMap::Page> page) { Q_EMIT pageReady(std::move(page)); },
        [this](const QString& sentence) { Q_EMIT failed(sentence); });
}

} // namespace ponderscope
