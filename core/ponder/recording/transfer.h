// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/device.h"
#include "core/policy/flops_model.h"
#include "core/ponder/choices/request.h"
#include "core/ponder/halting/halting.h"
#include "core/ponder/recording/recorder.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// The data of a window that collect() needs to turn copied numbers into results.
struct ReportedWindow {
    std::int64_t length = 0;              ///< tokens of the window in this run
    std::int64_t past = 0;                ///< tokens of the sequence before the window
    std::vector<std::int32_t> past_steps; ///< K_t of the tokens before the window; empty: K
    std::int64_t report_begin = 0;
    std::int64_t report_end = 0;
    std::vector<std::int32_t> ids; ///< ids of the reported tokens
};

/// The results of a run while they are copied to the host.
class ScoreTransfer {
public:
    ScoreTransfer(const Recorder& recorder, std::vector<ReportedWindow> windows);
    /// Waits for the copy and unpacks the results. Call it once. \p cost counts the tokens' FLOPs; \p
    /// decides_by_head as in FlopsModel::count.
    std::vector<WindowResult> collect(const FlopsModel& cost, bool decides_by_head);

private:
    struct Field {
        std::string name;
        std::vector<std::int64_t> shape; ///< without the token axis
        DType dtype = DType::f32;
    };
    std::vector<ReportedWindow> windows_;
    std::vector<Field> fields_; ///< the copied signals; they follow the scalar columns
    bool has_distribution_ = false;
    bool has_steps_ = false;
    bool all_ran_ = false; ///< StepsResult::all_ran
    std::unique_ptr<HostCopy> copy_;
};

/// The tokens of the windows that are read out, with their targets, on \p device. \p prefix: RunPlan::prefix,
/// or 0. Tokens of the prefix are not targets.
ReportedTokens reported_tokens(std::span<const Window> windows, at::Device device, std::int64_t prefix = 0);
/// The positions of the windows' tokens in their texts.
TokenPlaces token_places(std::span<const Window> windows, at::Device device);

} // namespace ponderscope
