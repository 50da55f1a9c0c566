// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/heatmap/step_map.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope {

class StepMapCanvas;

/// The map of a long sequence: the data to read from a trace, and a function that converts them to rows.
struct MapRequest {
    RunKey run;
    std::shared_ptr<const SequenceData> sequence; ///< has the executed steps
    SignalInfo info;                              ///< the signal to read
    Attribution attribution = Attribution::predicted;
    StepMap::Rows rows = StepMap::Rows::steps;
    std::string what; ///< identifies the part of the signal that is shown: "source 3 head -1"
    /// Converts a chunk of n tokens and their executed steps to values [n * steps]. Called on another thread.
    std::function<std::vector<float>(SignalChunk chunk, std::vector<std::int32_t> executed)> pick;
};

/// Reads the map of a long sequence in slices on its own thread, and shows it on a canvas. Meanwhile the
/// canvas shows the progress, or the error. GUI thread.
class MapLoader : public QObject {
    Q_OBJECT
public:
    explicit MapLoader(StepMapCanvas& canvas, QObject* parent = nullptr);

    /// Returns whether the map is shown at once, because the last request was the same.
    bool show(MapRequest request);
    void cancel();
    [[nodiscard]] bool isBusy() const { return reading_.isBusy(); }

Q_SIGNALS:
    void shown(); ///< the canvas has the map

private:
    void put();

    StepMapCanvas& canvas_;
    MapRequest request_;
    std::shared_ptr<const StepMap> map_;
    Task reading_;
};

} // namespace ponderscope
