// SPDX-License-Identifier: GPL-3.0-or-later
// DepthView over a long sequence: a sample of its rows, the selected token's row, and a map from a pyramid.
// Before Qt, whose keyword `signals` is a name there.
#include "core/trace/reader.h"

#include "views/depth/depth_view.h"

#include "views/common/depth_grid.h"
#include "views/depth/depth_charts.h"
#include "views/heatmap/step_map_canvas.h"

namespace ponderscope {

bool DepthView::isLong() const {
    const RunInfo* run = data_.run(selection_.runA());
    return run != nullptr && sequence_ &&
           static_cast<double>(sequence_->tokens.size()) * static_cast<double>(run->layers) *
                   static_cast<double>(run->layers) * static_cast<double>(run->max_steps + 1) >
               static_cast<double>(wholeWeights_);
}

bool DepthView::sampleLong(QString& hint) {
    const QString wanted = QStringLiteral("%1#%2 %3 %4 %5")
                               .arg(selection_.runA().trace)
                               .arg(selection_.runA().run)
                               .arg(selection_.sequence())
                               .arg(sequence_->tokens.size())
                               .arg(signal_);
    const RunInfo* run = data_.run(selection_.runA());
    if (wanted == sampleOf_ || run == nullptr) {
        return depth_.has_value();
    }
    hint = tr("Reading the weights…");
    sampleOf_ = wanted;
    rowOf_ = -1;
    row_.reset();
    averages_.reset();
    loader_.cancel();
    mapOf_.clear();
    depth_.reset();
    sampling_.start(
        [key = selection_.runA(), run = *run, info = info_,
         sequence = selection_.sequence()](const std::stop_token& stop) {
            const TraceReader reader = TraceReader::open(std::filesystem::path(key.trace.toStdU16String()));
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
            const TraceReader reader = TraceReader::open(std::filesystem::path(key.trace.toStdU16String()));
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
    const QString wanted = sampleOf_ + QStringLiteral(" %1 %2 %3").arg(source_).arg(step).arg(head);
    if (wanted == mapOf_) {
        if (loader_.mips()) {
            showLongMap(nullptr); // attributed otherwise, perhaps
        }
        return;
    }
    mapOf_ = wanted;
    asked_ = {-1, -1};
    map_->setHint(tr("Preparing the overview of this long sequence…"));
    map_->setMap(nullptr);
    MipRequest request;
    request.run = selection_.runA();
    request.sequence = sequence_;
    request.info = info_;
    request.rows = StepMap::Rows::layers;
    request.what = "source " + std::to_string(source_) + " step " + std::to_string(step) + " head " +
                   std::to_string(head);
    request.pick = [info = info_, source = source_, step, head](SignalChunk chunk,
                                                                std::vector<std::int32_t> executed) {
        return DepthMap(std::make_shared<const SignalChunk>(std::move(chunk)), info, std::move(executed))
            .over_tokens(source, step, head);
    };
    loader_.start(std::move(request));
}

void DepthView::showLongMap(std::shared_ptr<const StepMap::Page> page) {
    if (!long_ || !sequence_ || !loader_.mips()) {
        return;
    }
    if (!page) {
        asked_ = {-1, -1};
    }
    SignalInfo info = info_;
    info.unit = "probability"; // 0 to 1, as the grid beside it
    map_->setMap(std::make_shared<const StepMap>(sequence_, loader_.mips(), std::move(page), std::move(info),
                                                 selection_.attribution(), StepMap::Rows::layers));
    showMapScale();
    wantPage();
}

void DepthView::wantPage() {
    const StepMap* map = map_->map();
    if (!long_ || map == nullptr || !loader_.mips() ||
        map_->tokensPerPixel() >= static_cast<double>(4 * MipPyramid::base)) {
        return;
    }
    const auto first = static_cast<std::int64_t>(map_->viewFirst());
    const auto last = static_cast<std::int64_t>(map_->viewLast()) + 1;
    const std::int64_t room = (last - first) / 2 + 64; // to pan in without reading again
    const std::pair<qint64, qint64> wanted{first - room - 1, last + room};
    if (!map->exact(first, last) && wanted != asked_) {
        asked_ = wanted;
        loader_.page(wanted.first, wanted.second);
    }
}

} // namespace ponderscope
