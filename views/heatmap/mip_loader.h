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

/// A heatmap that is too long to be held: what to read of a trace, and how its elements become rows.
struct MipRequest {
    RunKey run;
    std::shared_ptr<const SequenceData> sequence; ///< for the steps that ran
    SignalInfo info;                              ///< its name is read
    Attribution attribution = Attribution::predicted;
    StepMap::Rows rows = StepMap::Rows::steps;
    std::string what; ///< beside the signal's name, what is picked of it: "source 3 head -1"
    /// Values [n * steps] of a chunk of n tokens, with the steps that they ran. InputError for a shape that
    /// does not fit. Called on another thread.
    std::function<std::vector<float>(SignalChunk chunk, std::vector<std::int32_t> executed)> pick;
};

/// Shows a long heatmap on a canvas: makes its pyramid, and reads the page that is in view where single
/// tokens can be told apart, on threads of its own. Until there is a map, the canvas shows the progress, or
/// the error. GUI thread.
class MipLoader : public QObject {
    Q_OBJECT
public:
    explicit MipLoader(StepMapCanvas& canvas, QObject* parent = nullptr);

    /// Whether the map is shown at once, because the last request had the same pyramid.
    bool show(MipRequest request);
    void cancel();
    [[nodiscard]] bool isBusy() const { return building_.isBusy() || paging_.isBusy(); }

Q_SIGNALS:
    void shown(); ///< the canvas has the map, or another page of it

private:
    void put();
    void wantPage();

    StepMapCanvas& canvas_;
    MipRequest request_;
    std::shared_ptr<const MipPyramid> mips_;
    std::shared_ptr<const StepMap::Page> page_;
    std::pair<std::int64_t, std::int64_t> asked_{-1, -1}; ///< rows of the last page, read or under way
    Task building_;
    Task paging_;
};

} // namespace ponderscope
