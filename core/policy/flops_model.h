// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/windows.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// The cost of a model's tokens as data: enough to count FLOPs for any choice of steps without the model
/// (methods.md section 11: exact integers, 2 per multiply-add, matrix products only). Recording counts FLOPs
/// by this model and stores the model with the run, so that replays count in the same way.
struct FlopsModel {
    /// skip: per_step, and slots of a step see only slots of the same step.
    enum class Visibility : std::uint8_t { per_step, interleaved, two_dimensional, skip };
    Visibility visibility = Visibility::per_step;
    /// Products of step k = 0..K beside attention: a slot's blocks and depth mixing, and after step K the
    /// gate of a method that evaluates it there; over layers, those of block k.
    std::vector<std::int64_t> steps;
    std::int64_t key = 0;                ///< of a visible key in one layer: 4 · n_q · d_h
    std::vector<std::int64_t> windows;   ///< a layer; 0: all keys are visible
    std::int64_t input = 0;              ///< of making slot k + 1's input from slot k's state
    std::vector<std::int64_t> decisions; ///< [K] of the gate or router after step k, for any rule
    std::int64_t read_out = 0;           ///< of the head: 2 · V · d
    bool input_reads_out = false;        ///< making an input runs the head anyway
    // Stacks whose steps cover the middle (methods-released.md section 1). `windows` are those of the steps'
    // layers; read_out holds the coda's products.
    std::int64_t prelude = 0;        ///< products once a token
    std::int64_t prelude_layers = 0; ///< which attend once a token,
    std::int64_t coda_layers = 0;    ///< and once a read-out
    std::vector<std::int64_t> prelude_windows, coda_windows; ///< of each of these layers; empty: 0 for all
    /// Layers as steps: of block l for a token that exited below it, whose keys and values are made there.
    /// Empty: steps are steps of pondering.
    std::vector<std::int64_t> exited;

    [[nodiscard]] bool layers_as_steps() const { return !exited.empty(); }
    [[nodiscard]] std::int64_t max_steps() const { return static_cast<std::int64_t>(steps.size()) - 1; }
    /// Layers that have a sliding window (0: none).
    [[nodiscard]] std::map<std::int64_t, std::int64_t> layers_by_window() const;

    /// FLOPs of every token of a sequence that is computed in \p windows_of_it. \p last_steps: of each token,
    /// from the first on. \p decides_by_head: the rule needs the read-out after each step at which it
    /// decides. Context tokens of a window count with the steps that they ran where they were read out. \p
    /// others: last steps of the tokens that each token sees; empty: last_steps. With zeros, a token's FLOPs
    /// depend on its own steps alone and are the least that any choice of the others leaves it.
    void count(std::span<const std::int32_t> last_steps, bool decides_by_head,
               std::span<const WindowSpan> windows_of_it, std::span<std::int64_t> flops,
               std::span<const std::int32_t> others = {}) const;

    [[nodiscard]] std::string to_json() const;
    /// No value for an invalid text or numbers out of range, because traces are untrusted.
    static std::optional<FlopsModel> from_json(const std::string& text);

    bool operator==(const FlopsModel&) const = default;
};

} // namespace ponderscope
