// SPDX-License-Identifier: GPL-3.0-or-later
// DepthView over a long sequence: a sample of its rows, the selected token's row, and a map from a pyramid.
#include "views/depth/depth_view.h"

#include "views/common/depth_grid.h"
#include "views/common/paths.h"
#include "views/depth/depth_charts.h"
#include "views/heatmap/step_map_canvas.h"

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

bool DepthView::isLong() const {
    const RunInfo* run = data_.run(selection_.runA());
    return run != nullptr && sequence_ &&
           static_cast<double>(sequence_->tokens.size()) * static_cast<double>(run->layers) *
                   static_cast<double>(run->layers) * static_cast<double>(run->max_steps + 1) >
               static_cast<double>(wholeWeights_);
}

bool DepthView::sampleLong(QString& hint) {
    const QString wanted = u"%1#%2 %3 %4 %5"_s.arg(selection_.runA().trace)
                               .arg(selection_.runA().run)
                               .arg(selection_.sequence())
                               .arg(sequence_->tokens.size())
                               .arg(signal_);
    const RunInfo* run = data_.run(selection_.runA());
    if (wanted == sampleOf_ || run == nullptr) {
        return depth_.has_value();
    }
    hint = u"Reading the weights…"_s;
    sampleOf_ = wanted;
    reading_.cancel(); // a row of what was shown before
    rowOf_ = -1;
    row_.reset();
    averages_.reset();
    loader_.cancel();
    depth_.reset();
    sampling_.start(
        [key = selection_.runA(), run = *run, info = info_,
         sequence = selection_.sequence()](const std::stop_token& stop) {
            const TraceReader reader = TraceReader::open(path_of(key.trace));
            return sampled_depth(reader, run, info, stop, sequence);
        },
        [this](DepthMap map) {
            depth_.emplace(std::move(map));
            refreshData();
        },
        [this](const QString& sentence) { grid_->clear(sentence); });
    return false;
}

void DepthView::readRow(qint64 row) {
    reading_.start(
        [key = selection_.runA(), info = info_, sequence = sequence_, row](const std::stop_token&) {
            const TraceReader reader = TraceReader::open(path_of(key.trace));
            std::optional<DepthMap> map;
            auto chunk = reader.signal(key.run, sequence->sequence, info.name, row, row + 1);
            if (chunk && static_cast<std::size_t>(row) < sequence->tokens.size()) {
                chunk->first = 0;
                map.emplace(std::make_shared<const SignalChunk>(std::move(*chunk)), info,
                            std::vector<std::int32_t>{sequence->tokens.steps[static_cast<std::size_t>(row)]});
            }
            return map;
        },
        [this, row](std::optional<DepthMap> map) {
            row_ = std::move(map);
            rowOf_ = row;
            refreshGrid();
        },
        [this](const QString& sentence) { grid_->clear(sentence); });
}

void DepthView::refreshLongMap(std::int64_t step, int head) {
    MipRequest request{
        selection_.runA(),
        sequence_,
        info_,
        selection_.attribution(),
        StepMap::Rows::layers,
        "source " + std::to_string(source_) + " step " + std::to_string(step) + " head " +
            std::to_string(head),
        [info = info_, source = source_, step, head](SignalChunk chunk, std::vector<std::int32_t> executed) {
            return DepthMap(std::make_shared<const SignalChunk>(std::move(chunk)), info, std::move(executed))
                .over_tokens(source, step, head);
        }};
    request.info.unit = "probability"; // 0 to 1, as the grid beside it
    loader_.show(std::move(request));
}

ViewCommand DepthView::viewCommand() const {
    if (signal_.isEmpty()) {
        const QString why = why_no_run(data_, selection_);
        return no_command(why.isEmpty() ? u"This run has no depth mixing."_s : why);
    }
    const auto axis = [this](const char* name) {
        const auto found = std::find(info_.axes.begin(), info_.axes.end(), name);
        return found == info_.axes.end() ? qsizetype{-1} : static_cast<qsizetype>(found - info_.axes.begin());
    };
    // token, then step, layer and source, heads last, as it is recorded; put in that order otherwise.
    QStringList order;
    const qsizetype step_axis = axis("step");
    const qsizetype head_axis = axis("head");
    order << QString::number(axis("token"));
    if (step_axis >= 0) {
        order << QString::number(step_axis);
    }
    for (qsizetype i = 0; i < static_cast<qsizetype>(info_.axes.size()); ++i) {
        if (i != axis("token") && i != step_axis && i != head_axis) {
            order << QString::number(i);
        }
    }
    if (head_axis >= 0) {
        order << QString::number(head_axis);
    }
    const qint64 token = selection_.shown();
    const qint64 row = token < 0 ? -1 : selection_.rowOf(token);
    if (shown_ == Shown::token && row < 0) {
        return no_command(u"Choose a word first. The weights are of one token."_s);
    }
    const QString range = shown_ == Shown::token ? u", %1, %2"_s.arg(row).arg(row + 1) : QString();
    QStringList lines;
    lines << u"weights = a.signal(%1, %2%3)  # %4"_s.arg(
        python_quoted(signal_), QString::number(selection_.sequence()), range, [this] {
            QStringList axes;
            for (const std::string& name : info_.axes) {
                axes << QString::fromStdString(name);
            }
            return axes.join(u", "_s);
        }());
    lines << u"weights = weights.astype(np.float32).transpose(%1)"_s.arg(order.join(u", "_s));
    if (step_axis >= 0) {
        lines << (selection_.step() >= 0
                      ? u"weights = weights[:, min(%1, weights.shape[1] - 1)]"_s.arg(selection_.step())
                      : u"steps = a.columns(%1%2)[\"steps\"]\n"
                        "weights = weights[np.arange(len(weights)), np.minimum(steps, "
                        "weights.shape[1] - 1)]"_s.arg(selection_.sequence())
                            .arg(range));
    }
    const bool mean_of_heads =
        head_axis >= 0 && (selection_.head() < 0 || !depth_ || selection_.head() >= depth_->heads());
    if (head_axis >= 0 && !mean_of_heads) {
        lines << u"weights = weights[..., %1]"_s.arg(selection_.head());
    }
    const QString heads = mean_of_heads ? u"(0, -1)"_s : u"0"_s;
    lines << u"print(np.%1(weights, axis=%2))  # layer, source"_s.arg(
        shown_ == Shown::spread ? u"nanstd"_s : u"nanmean"_s, heads);
    return python_view(data_, selection_, lines);
}

} // namespace ponderscope
