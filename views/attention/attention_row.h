// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <vector>

namespace ponderscope {

/// The sequence attention of one token in the recorded layers and heads: a row of the signal `attention`
/// (record --attention). Its axes: token, step, layer, head, key_step (optional), back (distance to the key).
class AttentionRow {
public:
    /// Whether the signal is sequence attention.
    static bool fits(const SignalInfo& info);

    /// \p chunk: the single row of token \p row, as TraceReader returns it. The signal must fit.
    AttentionRow(const SignalChunk& chunk, const SignalInfo& info, std::int64_t row);

    [[nodiscard]] std::int64_t row() const { return row_; }
    [[nodiscard]] std::int64_t steps() const { return steps_; }
    [[nodiscard]] std::int64_t layers() const { return layers_; } ///< number of recorded layers
    [[nodiscard]] std::int64_t heads() const { return heads_; }   ///< number of recorded heads
    /// The weight on each token from 0 to row(), summed over the steps of the key token. \p layer and \p head
    /// are indices among the recorded layers and heads; -1: the mean over all.
    [[nodiscard]] std::vector<float> weights(std::int64_t step, std::int64_t layer, std::int64_t head) const;

private:
    std::vector<float> values_;
    std::int64_t row_ = 0;
    std::int64_t steps_ = 0;
    std::int64_t layers_ = 0;
    std::int64_t heads_ = 0;
    std::int64_t key_steps_ = 1;
    std::int64_t back_ = 0; ///< number of recorded distances; farther tokens have no weight
};

/// Numbers of the recorded layers and heads in the model; 0, 1, ... if the description lacks them.
struct AttentionChoiceNumbers {
    std::vector<int> layers, heads;
};
AttentionChoiceNumbers chosen_numbers(const SignalInfo& info, std::int64_t layers, std::int64_t heads);

} // namespace ponderscope
