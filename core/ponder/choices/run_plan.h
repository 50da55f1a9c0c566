// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

class HaltingRule;
class Method;

/// The slots (t',k') that slot (t,k) may attend to (methods.md section 2). K_t': last step of token t'.
enum class VisibilityRule : std::uint8_t {
    per_step,        ///< iff t' <= t and k' = min(k, K_t')
    interleaved,     ///< iff t' < t, or t' = t and k' <= k
    two_dimensional, ///< iff t' <= t and k' <= k
};

/// Under the per-step rule: the slot of an earlier token t' to which slot (t, k) attends, if t' stopped at
/// step K_t' (methods-released.md section 1). Each choice is computed exactly; the choices differ in results.
enum class KvPolicy : std::uint8_t {
    full,     ///< (t', k): every step runs; an exit only chooses the step that is read out
    per_step, ///< (t', min(k, K_t'))
    shared,   ///< (t', K_t') at every k; t' must be finished first
    skip,     ///< (t', k) if K_t' >= k, else t' is hidden
};
std::string to_string(KvPolicy policy);
std::optional<KvPolicy> kv_policy_from_string(const std::string& name);

/// Layers and query heads whose attention weights a run records; by default none (methods.md section 10).
/// Each layer and head costs an extra product. While a batch is scored, the weights of all its windows are in
/// memory, padded to the longest window.
struct AttentionChoice {
    std::vector<std::int64_t> layers, heads; ///< ascending, without repeats; both or neither empty

    /// Parses LAYERS[:HEADS]. Each is `all`, or numbers (from 0) and ranges, as in 0,3-5. Without HEADS: all
    /// heads. InputError: other text, or a layer or head that the model does not have.
    static AttentionChoice parse(const std::string& text, const ModelConfig& config);
    [[nodiscard]] bool none() const { return layers.empty(); }
    [[nodiscard]] std::string text() const; ///< "layers 0, 3-5; heads 1, 2"
};

/// States that a run records: after `layers` at every step; empty `layers`: at the end of each step.
struct StateChoice {
    std::vector<std::int64_t> layers; ///< ascending, without repeats; only layers that every step runs

    /// Parses `all`, or numbers (from 0) and ranges, as in 0,3-5. Empty text: the end of each step.
    /// InputError: other text, a layer that does not run at every step, or a residual with several streams.
    static StateChoice parse(const std::string& text, const ModelConfig& config);
    [[nodiscard]] std::string text() const; ///< "after layers 0, 3-5", "at the end of each step"
};

/// InputError: the output of a layer is not a single residual stream. \p what is the option's name in the
/// message: "--record states:LAYERS".
void require_single_stream(const ModelConfig& config, const std::string& what);

/// The recorded data of mixtures of experts. `chosen`: the chosen experts, their weights and a few numbers of
/// the router. `probabilities`: also the probabilities of all experts.
enum class RecordedExperts : std::uint8_t { none, chosen, probabilities };

/// How an engine computes, and what it records besides the RecordLevel's signals. Engine::use checks a plan.
struct RunPlan {
    std::shared_ptr<const HaltingRule> rule; ///< halting rule; nullptr: the method's own rule
    /// Interleaved rule: Jacobi refreshes after those that create the slots (core/README.md); absent: exact.
    std::optional<std::int64_t> refreshes;
    AttentionChoice attention;       ///< recorded at any level but nll, if no earlier tokens are in a cache
    std::optional<KvPolicy> kv = {}; ///< absent: full if Method::exits_select() and no `rule`; else per_step
    std::optional<StateChoice> states = {}; ///< recorded at any level but nll
    bool lens = false; ///< read out every layer at every step (a head product each), at any level but nll
    RecordedExperts experts = RecordedExperts::none; ///< recorded at any level but nll
    /// Length of the bidirectional prefix: the first tokens of every text see each other in both directions
    /// (HRM-Text). They are not targets. Absent: 0 in scoring. In generation: the length of the prompt if
    /// the model was trained in this way (config.released.prefix_lm) and the plan has neither `kv` nor
    /// `rule`; else 0.
    std::optional<std::int64_t> prefix = {};
    /// The blocks of a vanilla model are its steps (methods.md section 9). Every block is read out. Halting
    /// rules choose the exit.
    bool layers_are_steps = false;
    /// The start state of a recurrent stack: "random", "random:SEED", "zero", or a safetensors file with
    /// `initial_state` [B, T or more, d]. A file name is searched first in the checkpoint's folder. Empty:
    /// random.
    std::string start_state = {};

    // The effects of the plan on a method (schedule/steps.cpp).
    /// `kv` or its default. Used under the per-step rule only.
    [[nodiscard]] KvPolicy kv_policy(const Method& method) const;
    /// Whether tokens may be read out before K although every step runs.
    [[nodiscard]] bool selects(const Method& method) const;
    /// Whether tokens may stop, so that their later steps do not run.
    [[nodiscard]] bool stops(const Method& method) const;
    /// Whether a slot sees K/V rows of other passes, even without a cache.
    [[nodiscard]] bool keeps_rows(const Method& method) const;
    /// Whether a slot needs the last step of all earlier tokens (KvPolicy::shared).
    [[nodiscard]] bool sequential(const Method& method) const;
    /// Interleaved rule: whether one pass is not enough, because inputs depend on states or tokens may stop.
    [[nodiscard]] bool iterates(const Method& method) const;
    /// Whether the plan may have `refreshes`: iterates() is true, or a model with pause tokens has a `rule`.
    [[nodiscard]] bool counts_refreshes(const Method& method) const;
};

} // namespace ponderscope
