// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/ponder/method.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace ponderscope {

/// FLOPs of one slot by the keys that it sees, its own included.
class SlotCost {
public:
    explicit SlotCost(const Backbone& backbone);
    /// \p step matters only where later passes mix what earlier ones left (depth_sources.h).
    [[nodiscard]] std::int64_t of_slot(std::int64_t visible, std::int64_t step = 0) const;
    [[nodiscard]] at::Tensor of_slots(const at::Tensor& visible) const; ///< int64 [n] -> int64 [n]
    [[nodiscard]] std::int64_t of_read_out() const { return read_out_; }

private:
    std::int64_t fixed_ = 0;           ///< products of the blocks
    std::vector<std::int64_t> mixing_; ///< depth attention of a slot, by step
    std::int64_t per_key_ = 0;         ///< a layer: q·k and p·v
    std::int64_t read_out_ = 0;
    std::map<std::int64_t, std::int64_t> layers_; ///< sliding window (0: none) -> layers that have it
};

/// FLOPs of every token of one sequence, exact integers (methods.md section 11): 2 per multiply-add, matrix
/// products only; what is computed only to be recorded is not counted. \p steps: K_t of the sequence's tokens
/// from its first on.
std::vector<std::int64_t> count_flops(const Backbone& backbone, const Method& method,
                                      std::span<const std::int64_t> steps);

} // namespace ponderscope
