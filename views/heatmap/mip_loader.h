// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/heatmap/mip_pyramid.h"
#include "views/heatmap/step_map.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace ponderscope {

class StepMapCanvas;

/// A heatmap that is too long for memory: what to read from a trace, and how to turn its elements into rows.
struct MipRequest {
    RunKey run;
    std::shared_ptr<const SequenceData> sequence; ///< has the executed steps
    SignalInfo info;                              ///< the signal to read
    Attribution attribution = Attribution::predicted;
    StepMap::Rows rows = StepMap::Rows::steps;
    std::string what; ///< identifies the part of the signal that is shown: "source 3 head -1"
    /// Returns values [n * steps] from a chunk of n tokens and their executed steps. InputError: the shape
    /// does not match. Called on another thread.
    std::function<std::vector<float>(SignalChunk chunk, std::vector<std::int32_t> executed)> pick;
};

/// Shows a long heatmap on a canvas: makes its pyramid, and reads the visible page if single tokens are
/// distinguishable, on its own threads. Meanwhile the canvas shows the progress, or the error. GUI thread.
class MipLoader : public QObject {
    Q_OBJECT
public:
    explicit MipLoader(StepMapCanvas& canvas, QObject* parent = nullptr);

    /// Returns whether the map is shown at once, because the last request had the same pyramid.
    bool show(MipRequest request);
    void cancel();
    [[nodiscard]] bool isBusy() const { return building_.isBusy() || paging_.isBusy(); }

Q_SIGNALS:
    void shown(); ///< the canvas has the map, or another page

private:
    void put();
    void wantPage();

    StepMapCanvas& canvas_;
    MipRequest request_;
    std::shared_ptr<const MipPyramid> mips_;
    std::shared_ptr<const StepMap::Page> page_;
    std::pair<std::int64_t, std::int64_t> asked_{-1, -1}; ///< rows of the last requested page
    Task building_;
    Task paging_;
};

} // namespace ponderscope
