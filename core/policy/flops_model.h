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

/// Counts FLOPs for any choice of steps without the model's weights (methods.md section 11: exact integers, 2
/// per multiply-add, matrix products only). Recording and replays use the same FlopsModel, which is stored
/// with the run.
struct FlopsModel {
    /// The slots that a slot sees, as in VisibilityRule (core/ponder/choices/run_plan.h). skip: like
    /// per_step, but a slot sees only slots of the same step.
    enum class Visibility : std::uint8_t { per_step, interleaved, two_dimensional, skip };
    Visibility visibility = Visibility::per_step;
    /// FLOPs of a token's step k = 0..K without attention: blocks and depth mixing. Step K includes the gate
    /// if the method evaluates the gate there. With layers as steps: FLOPs of block k.
    std::vector<std::int64_t> steps;
    std::int64_t key = 0;                ///< FLOPs of a visible key in one layer: 4 · n_q · d_h
    std::vector<std::int64_t> windows;   ///< sliding window of each layer; 0: all keys are visible
    std::int64_t input = 0;              ///< FLOPs to make slot k + 1's input from slot k's state
    std::vector<std::int64_t> decisions; ///< [K] FLOPs of gate or router after step k, also under policies
    std::int64_t read_out = 0;           ///< FLOPs of the head: 2 · V · d
    bool input_reads_out = false;        ///< making an input also runs the head
    // For stacks whose steps run the middle blocks (methods-released.md section 1). Here `windows` has only
    // the layers that the steps run, and read_out includes the coda's products.
    std::int64_t prelude = 0;        ///< FLOPs of the prelude for each token
    std::int64_t prelude_layers = 0; ///< prelude layers, which attend once for each token
    std::int64_t coda_layers = 0;    ///< coda layers, which attend once for each read-out
    std::vector<std::int64_t> prelude_windows, coda_windows; ///< like `windows`; empty: all 0
    /// With layers as steps: FLOPs of the keys and values of block l for a token that exited below block l.
    /// Empty: steps are pondering steps.
    std::vector<std::int64_t> exited;

    [[nodiscard]] bool layers_as_steps() const { return !exited.empty(); }
    [[nodiscard]] std::int64_t max_steps() const { return static_cast<std::int64_t>(steps.size()) - 1; }

    /// Writes the FLOPs of every token of a sequence to \p flops. \p windows_of_it: the windows in which the
    /// sequence ran. \p last_steps: last step of each token of the sequence. \p decides_by_head: the rule
    /// needs the read-out after each step at which it decides. A token's last step also holds in windows
    /// where the token is only context. \p others: last steps of the tokens that a token attends to; empty:
    /// last_steps. With zeros in \p others, a token's FLOPs depend only on its own steps, and no choice of
    /// steps for the other tokens gives fewer FLOPs.
    void count(std::span<const std::int32_t> last_steps, bool decides_by_head,
               std::span<const WindowSpan> windows_of_it, std::span<std::int64_t> flops,
               std::span<const std::int32_t> others = {}) const;

    [[nodiscard]] std::string to_json() const;
    /// No value for an invalid text or numbers out of range, because a trace is untrusted input.
    static std::optional<FlopsModel> from_json(const std::string& text);

    bool operator==(const FlopsModel&) const = default;
};

} // namespace ponderscope
