// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/choices/request.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace ponderscope {

/// The patches of one run's tokens on the run's device: rows that replace rows of state tensors.
class RunPatches {
public:
    /// The patches of the tokens in \p windows. The run packs the tokens one window after the other.
    RunPatches(std::span<const StatePatch> patches, std::span<const Window> windows, at::Device device);

    [[nodiscard]] bool empty() const { return groups_.empty(); }
    /// Applies the patches of \p step and \p layer (StatePlace::end_of_step: the end of the step) to the
    /// states [n, d]. \p tokens: int64 [n], ascending, the tokens of the states; undefined: all in order.
    [[nodiscard]] at::Tensor apply(const at::Tensor& states, const at::Tensor& tokens, std::int64_t step,
                                   std::int64_t layer) const;
    /// apply() for slots of several steps, ordered by token, then step.
    [[nodiscard]] at::Tensor apply_to_slots(at::Tensor states, const at::Tensor& tokens,
                                            const at::Tensor& steps, std::int64_t layer) const;

private:
    struct Group {
        at::Tensor tokens; ///< int64 [m], numbers of the tokens in the run, ascending
        at::Tensor states; ///< fp32 [m, d]
    };
    using Where = std::pair<std::int64_t, std::int64_t>; ///< layer, step
    std::map<Where, Group> groups_;
};

} // namespace ponderscope
