// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/map_loader.h"

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "views/common/paths.h"
#include "views/heatmap/step_map_canvas.h"

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr std::int64_t slice_rows = 1 << 14;
constexpr std::int64_t most_loaded_cells = std::int64_t{1} << 26; ///< 256 MB

std::shared_ptr<const StepMap> read_map(const MapRequest& wanted, const std::stop_token& stop,
                                        const std::function<void(std::int64_t percent)>& tell) {
    const auto& executed = wanted.sequence->tokens.steps;
    const auto rows = static_cast<std::int64_t>(executed.size());
    const TraceReader reader = TraceReader::open(path_of(wanted.run.trace));
    std::vector<float> values;
    std::int64_t steps = 0;
    std::int64_t told = -1;
    for (std::int64_t begin = 0; begin < rows; begin += slice_rows) {
        throw_if_stopped(stop);
        auto chunk = reader.signal(wanted.run.run, wanted.sequence->sequence, wanted.info.name, begin,
                                   std::min(begin + slice_rows, rows));
        if (!chunk || chunk->shape.front() <= 0) {
            break; // the rest is still being recorded
        }
        const std::int64_t end = std::min(begin + chunk->shape.front(), rows);
        const std::vector<float> slice =
            wanted.pick(std::move(*chunk), {executed.begin() + begin, executed.begin() + end});
        steps = static_cast<std::int64_t>(slice.size()) / (end - begin);
        if (steps * rows > most_loaded_cells) {
            throw InputError(ErrorId::figure_size, path_of(wanted.run.trace),
                             "at most " + std::to_string(most_loaded_cells) + " values of \"" +
                                 wanted.info.name + "\" in a sequence",
                             std::to_string(steps * rows) + " values",
                             "draw a part of the sequence: ponderscope figure, step_heatmap with \"tokens\"");
        }
        values.reserve(static_cast<std::size_t>(steps * rows));
        values.insert(values.end(), slice.begin(), slice.end());
        if (const std::int64_t now = end * 100 / rows; now != told) {
            told = now;
            tell(now);
        }
    }
    if (steps == 0) {
        throw InputError(ErrorId::run_unsuited, path_of(wanted.run.trace),
                         "values of \"" + wanted.info.name + "\"", "no value", "record the run again");
    }
    return std::make_shared<const StepMap>(wanted.sequence, std::move(values), steps, wanted.info,
                                           wanted.attribution, wanted.rows);
}

bool is_same_map(const MapRequest& a, const MapRequest& b) {
    return a.sequence && b.sequence && a.run == b.run && a.sequence->sequence == b.sequence->sequence &&
           a.sequence->tokens.size() == b.sequence->tokens.size() && a.info.name == b.info.name &&
           a.attribution == b.attribution && a.what == b.what;
}

} // namespace

MapLoader::MapLoader(StepMapCanvas& canvas, QObject* parent)
    : QObject(parent), canvas_(canvas), reading_(this) {}

bool MapLoader::show(MapRequest request) {
    const bool known = is_same_map(request_, request);
    request_ = std::move(request);
    if (known) {
        put();
        return map_ != nullptr;
    }
    map_.reset();
    canvas_.setHint(u"Reading this long sequence…"_s);
    canvas_.setMap(nullptr);
    reading_.start(
        [this, wanted = request_](const std::stop_token& stop, const Task::Tell& tell) {
            return read_map(wanted, stop, [&](std::int64_t percent) {
                tell(
                    [this, percent] { canvas_.setHint(u"Reading this long sequence… %1 %"_s.arg(percent)); });
            });
        },
        [this](std::shared_ptr<const StepMap> map) {
            map_ = std::move(map);
            put();
        },
        [this](const QString& sentence) { canvas_.setHint(sentence); });
    return false;
}

void MapLoader::cancel() {
    reading_.cancel();
    request_ = {};
    map_.reset();
}

void MapLoader::put() {
    if (map_) {
        canvas_.setMap(map_);
        Q_EMIT shown();
    }
}

} // namespace ponderscope
