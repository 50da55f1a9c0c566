// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/heatmap/mip_pyramid.h"
#include "views/heatmap/step_map.h"

#include <functional>
#include <memory>
#include <string>

namespace ponderscope {

class TraceReader;

/// A heatmap that is too long to be held: what to read of a trace, and how its elements become rows.
struct MipRequest {
    RunKey run;
    std::shared_ptr<const SequenceData> sequence; ///< for the steps that ran
    SignalInfo info;
    StepMap::Rows rows = StepMap::Rows::steps;
    std::string what; ///< beside the signal's name, what is picked of it: "source 3 head -1"
    /// Values [n * steps] of a chunk of n tokens, with the steps that those ran. InputError for a shape that
    /// does not fit. Called on another thread.
    std::function<std::vector<float>(SignalChunk chunk, std::vector<std::int32_t> executed)> pick;
};

/// Makes or finds the pyramid of a heatmap, and reads pages of it, on threads of its own; both can be
/// overtaken and cancelled at any time. The pyramid lies in the user's cache, never beside the trace, so that
/// a trace that cannot be written stays as it is. GUI thread.
class MipLoader : public QObject {
    Q_OBJECT
public:
    explicit MipLoader(QObject* parent = nullptr) : QObject(parent), building_(this), paging_(this) {}

    /// Ends in ready or failed.
    void start(MipRequest request);
    void cancel();
    /// Rows [first, last), as they were recorded; pageReady follows. Nothing before ready.
    void page(std::int64_t first, std::int64_t last);
    [[nodiscard]] bool isBusy() const { return building_.isBusy() || paging_.isBusy(); }
    [[nodiscard]] bool isBuilding() const { return building_.isBusy(); }
    [[nodiscard]] std::shared_ptr<const MipPyramid> mips() const { return mips_; }

Q_SIGNALS:
    void progressed(int perMille); ///< while it is made
    void ready();
    void failed(const QString& sentence);
    void pageReady(std::shared_ptr<const ponderscope::StepMap::Page> page);

private:
    MipRequest request_;
    std::shared_ptr<const MipPyramid> mips_;
    Task building_;
    Task paging_;
};

} // namespace ponderscope
