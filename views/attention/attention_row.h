// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <vector>

namespace ponderscope {

/// The sequence attention of one token in the recorded layers and heads: a row of the signal `attention`
/// (record --attention), axes token, step, layer, head, perhaps key_step, back. A value; needs no window.
class AttentionRow {
public:
    /// Whether a signal is of this kind.
    static bool fits(const SignalInfo& info);

    /// \p chunk: one row, the token \p row of its sequence. InputError when shape and axes do not fit, or
    /// when the elements are no numbers that can be shown.
    AttentionRow(const SignalChunk& chunk, const SignalInfo& info, std::int64_t row);

    [[nodiscard]] std::int64_t row() const { return row_; }
    [[nodiscard]] std::int64_t steps() const { return steps_; }
    [[nodiscard]] std::int64_t layers() const { return layers_; } ///< recorded ones
    [[nodiscard]] std::int64_t heads() const { return heads_; }   ///< recorded ones
    /// The weight on each token from 0 to row(), over all of a key token's slots. \p layer and \p head count
    /// the recorded ones; -1: the mean over them.
    [[nodiscard]] std::vector<float> weights(std::int64_t step, std::int64_t layer, std::int64_t head) const;

private:
    std::vector<float> values_;
    std::int64_t row_ = 0;
    std::int64_t steps_ = 0;
    std::int64_t layers_ = 0;
    std::int64_t heads_ = 0;
    std::int64_t key_steps_ = 1;
    std::int64_t back_ = 0; ///< recorded distances; tokens beyond have no weight
};

/// Numbers of the recorded layers and heads in the model, from the signal's description; 0, 1, ... where it
/// does not say.
struct AttentionChoiceNumbers {
    std::vector<int> layers, heads;
};
AttentionChoiceNumbers chosen_numbers(const SignalInfo& info, std::int64_t layers, std::int64_t heads);

} // namespace ponderscope
