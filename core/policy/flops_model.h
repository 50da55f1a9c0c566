// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// What a model's tokens cost, as data: enough to count FLOPs for any choice of steps without the model
/// (methods.md section 11: exact integers, 2 per multiply-add, matrix products only). Kept with each run.
struct FlopsModel {
    enum class Visibility : std::uint8_t { per_step, interleaved, two_dimensional };
    Visibility visibility = Visibility::per_step;
    std::int64_t slot = 0;               ///< of a slot, without attention: the blocks' matrices, depth mixing
    std::int64_t key = 0;                ///< of a visible key in one layer: 4 · n_q · d_h
    std::vector<std::int64_t> windows;   ///< a layer; 0: all keys are visible
    std::int64_t input = 0;              ///< of making slot k + 1's input from slot k's state
    std::vector<std::int64_t> decisions; ///< of the gate or router after step k = 0..K-1, whoever decides
    std::int64_t once = 0;               ///< of a token, whatever its steps
    std::int64_t read_out = 0;           ///< of the head: 2 · V · d
    bool input_reads_out = false;        ///< making an input runs the head anyway
    // Layers as steps: a token that exits after block e has keys and values in the blocks above.
    bool layers_as_steps = false;
    std::int64_t key_value_projections = 0; ///< of one block

    [[nodiscard]] std::int64_t max_steps() const;

    /// FLOPs of every token of one sequence. \p steps: the last step of each token, from the first token on.
    /// \p decides_by_head: the rule looks at the read-out after each step that it is asked at.
    void count(std::span<const std::int32_t> steps, bool decides_by_head,
               std::span<std::int64_t> flops) const;

    [[nodiscard]] std::string to_json() const;
    /// Nothing for a text that is none, or one with numbers out of range: a trace is a stranger's.
    static std::optional<FlopsModel> from_json(const std::string& text);

    bool operator==(const FlopsModel&) const = default;
};

} // namespace ponderscope
