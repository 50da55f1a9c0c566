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

/// Which slots a slot may attend to (methods.md section 2).
enum class VisibilityRule : std::uint8_t {
    per_step,        ///< (t,k) sees (t',k') iff t' <= t and k' = min(k, K_t')
    interleaved,     ///< iff t' < t, or t' = t and k' <= k
    two_dimensional, ///< iff t' <= t and k' <= k
};

/// What slots of later tokens see of a token t' that stopped at K_t', under the per-step rule
/// (methods-released.md section 1). Each choice is computed exactly, and each gives other results than
/// `full`.
enum class KvPolicy : std::uint8_t {
    full,     ///< (t', k): every step runs, exits choose the read-out
    per_step, ///< (t', min(k, K_t'))
    shared,   ///< (t', K_t') at every k; needs finished predecessors
    skip,     ///< (t', k) if K_t' >= k, else nothing of it
};
std::string to_string(KvPolicy policy);
std::optional<KvPolicy> kv_policy_from_string(const std::string& name);

/// Layers and query heads whose sequence attention a run records; by default none (methods.md section 10). It
/// costs an extra product in those layers and heads; a score holds the weights of all of its windows, each as
/// wide as the longest.
struct AttentionChoice {
    std::vector<std::int64_t> layers, heads; ///< ascending, each once; both empty or neither

    /// LAYERS[:HEADS], each `all` or numbers and ranges from 0 as in 0,3-5; without heads: all of them.
    /// InputError: anything else, a layer or a head that the model does not have.
    static AttentionChoice parse(const std::string& text, const ModelConfig& config);
    [[nodiscard]] bool none() const { return layers.empty(); }
    [[nodiscard]] std::string text() const; ///< "layers 0, 3-5; heads 1, 2"
};

/// States that a run records: after these layers at every step, or, without layers, at the end of each step.
struct StateChoice {
    std::vector<std::int64_t> layers; ///< ascending, each once, of those that every step runs

    /// Empty: the end of each step. `all`, or numbers and ranges from 0 as in 0,3-5. InputError: anything
    /// else, a layer that the model does not run at every step, a residual that is no single stream.
    static StateChoice parse(const std::string& text, const ModelConfig& config);
    [[nodiscard]] std::string text() const; ///< "after layers 0, 3-5", "at the end of each step"
};

/// InputError unless the output of a layer is a single residual stream. \p what: "--record states:LAYERS".
void require_single_stream(const ModelConfig& config, const std::string& what);

/// Records of mixtures of experts: nothing; the chosen experts with their weights and a few numbers of the
/// router; or the probabilities of all experts as well.
enum class RecordedExperts : std::uint8_t { none, chosen, probabilities };

/// How an engine computes and what it records beside the level. Engine::use checks a plan.
struct RunPlan {
    std::shared_ptr<const HaltingRule> rule; ///< in the place of the method's own; nullptr: that
    /// Interleaved rule: refreshes after the growth of slots; absent: exact (interleaved.h).
    std::optional<std::int64_t> refreshes;
    AttentionChoice attention;       ///< recorded at any level but nll, of tokens without a past in a cache
    std::optional<KvPolicy> kv = {}; ///< absent: as the method's authors have it, per_step under another rule
    std::optional<StateChoice> states = {}; ///< recorded at any level but nll
    bool lens = false; ///< read every layer out at every step, at any level but nll: a head product each
    RecordedExperts experts = RecordedExperts::none; ///< recorded at any level but nll
    /// First tokens of every text that see each other in both directions (HRM-Text); their NLL is no
    /// prediction and becomes NaN. Absent: none in a score, the prompt in a generation of a model that is
    /// trained so (config.released.prefix_lm).
    std::optional<std::int64_t> prefix = {};
    /// The steps of a vanilla model are its blocks (methods.md section 9): every block is read out, and
    /// halting rules decide about exits.
    bool layers_are_steps = false;
    /// The start state of a recurrent stack: "random", "random:SEED", "zero", or a safetensors file
    /// with `initial_state` [B, T or more, d], looked for in the checkpoint's folder first. Empty: random.
    std::string start_state = {};

    // Consequences for a method (schedule/steps.cpp).
    /// What later tokens see of stopped tokens; only used under the per-step rule.
    [[nodiscard]] KvPolicy kv_policy(const Method& method) const;
    /// Whether tokens may be read out before K while every step runs.
    [[nodiscard]] bool selects(const Method& method) const;
    /// Whether tokens may stop, so that later steps do not run for them.
    [[nodiscard]] bool stops(const Method& method) const;
    /// Whether slots see rows of other passes, even without a cache.
    [[nodiscard]] bool keeps_rows(const Method& method) const;
    /// Whether every slot needs finished predecessors, although the per-step rule has no order.
    [[nodiscard]] bool sequential(const Method& method) const;
    /// Whether slots are computed in passes over all of them.
    [[nodiscard]] bool iterates(const Method& method) const;
    /// Whether refreshes may be counted: also under a rule that stops no token, without refreshes.
    [[nodiscard]] bool counts_refreshes(const Method& method) const;
};

} // namespace ponderscope
