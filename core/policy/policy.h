// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/method_info.h"
#include "core/policy/policy_spec.h"
#include "core/policy/signal_columns.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// One parameter of a policy.
struct PolicyParameter {
    enum class Absent : std::uint8_t {
        refused,  ///< the policy's text must set it
        preset,   ///< defaults to `value`
        from_run, ///< defaults to a value of the run that the policy is applied to
    };
    std::string key;
    std::string meaning; ///< for help and tooltips
    bool whole = false;  ///< an unsigned 64-bit integer
    double low = 0;      ///< smallest and largest allowed value; not for seeds
    double high = std::numeric_limits<double>::max();
    Absent absent = Absent::refused;
    PolicySpec::Value value = 0.0; ///< the default
};

/// Facts about the run that a rule needs besides the signals.
struct PolicyContext {
    std::int64_t max_steps = 0; ///< K
    /// The threshold of the model's own rule; NaN: the rule has no threshold.
    double own_threshold = std::numeric_limits<double>::quiet_NaN();
    /// The step at which the config stops every token, whatever the threshold.
    std::optional<std::int64_t> exit_step = std::nullopt;
    /// The condition of the model's own rule (method_info.h).
    OwnRule::Stops own_rule = OwnRule::Stops::below;
    /// Mean steps of policy `learned` at own_threshold, over tokens with a target. NaN: no threshold.
    double learned_rate = std::numeric_limits<double>::quiet_NaN();

    /// Whether the policy `learned` works without its parameter theta.
    [[nodiscard]] bool has_own_rule() const { return exit_step || !std::isnan(own_threshold); }
};

/// A rule that stops each token at the first k in 0..K-1 for which stops() is true, else at K (methods.md
/// section 9). Immutable; threads may share it.
class Policy {
public:
    virtual ~Policy() = default;

    /// Computes a number for each token that does not depend on the step (a random number, a bound that
    /// decays with the position). The caller passes the numbers to stops().
    virtual void per_token(std::span<const TokenPlace> places, std::span<double> numbers) const;

    /// Sets stop[i] to 1 iff the rule stops token first + i after step \p k < K, else to 0. Reads no step
    /// above k. Results for tokens that stopped earlier are ignored.
    virtual void stops(const SignalColumns& columns, std::size_t first, std::int64_t k,
                       std::span<const double> numbers, std::span<std::uint8_t> stop) const = 0;

    /// Chooses the steps of tokens [first, first + steps.size()). Token first + i is recorded up to step
    /// ran[i], so its result is at most ran[i]. The oracle, which is not causal, overrides this function.
    virtual void choose(const SignalColumns& columns, std::size_t first, std::span<const TokenPlace> places,
                        std::span<const std::int32_t> ran, std::span<std::int32_t> steps) const;
};

/// A kind of policy as data for help, parser, sliders and messages (kinds.cpp).
struct PolicyKind {
    /// The name of a rule over a named signal contains two keys: "signal:name=gate,stops=below".
    std::string name;
    std::string rule;                             ///< when a token stops, in words for help and window
    std::string source = {};                      ///< paper; "" for none
    std::vector<PolicyParameter> parameters = {}; ///< the first is the threshold
    std::vector<PolicySignal> needs = {};         ///< recorded signals that the rule reads
    bool causal = true;                           ///< false: a bound, not a policy that can run
    std::int64_t first_step = 0; ///< the first step at which the rule decides, with default parameters
    /// Returns the number that the rule compares with the threshold, for a token at step k >= first_step. The
    /// number has the threshold's unit. nullptr: the first signal of `needs`.
    double (*compared)(const SignalColumns& columns, std::size_t token, const TokenPlace& place,
                       std::int64_t k) = nullptr;
    /// InputError if the spec does not fit the run ("fixed:n=7" with K = 3).
    std::unique_ptr<Policy> (*make)(const PolicySpec& spec, const PolicyContext& context) = nullptr;

    /// Whether the rule needs the read-out, so that a run with this rule computes the head at each decision.
    [[nodiscard]] bool reads_head() const;
    [[nodiscard]] const PolicyParameter* find(std::string_view key) const; ///< nullptr: no such key
    /// Whether the engine can run a model with this rule. False if the rule uses the next token, or a signal
    /// known only by name.
    [[nodiscard]] bool can_run() const;
    /// Whether the kind comes from signal_kind().
    [[nodiscard]] bool is_signal_rule() const { return name.find(':') != std::string::npos; }
    /// The text of a policy of this kind: its name with the KEY=VALUE pairs \p pairs.
    [[nodiscard]] std::string with_keys(const std::string& pairs) const;
};

/// All kinds except the rules over a signal by name, in the order of the documents.
std::span<const PolicyKind> policy_kinds();
/// The rule that compares a recorded per-step signal with theta. It stops a token when the signal is below
/// theta, or with OwnRule::Stops::at_least when the signal is at least theta. Each signal and direction has
/// one object, which lives until the program ends. Thread-safe.
const PolicyKind& signal_kind(PolicySignal signal, OwnRule::Stops stops);
/// A kind by its name ("entropy"; for rules over a signal also "signal:name=gate", without `stops`). nullptr:
/// unknown name. InputError: wrong keys in the name of a rule over a signal.
const PolicyKind* find_policy_kind(std::string_view name);

/// Makes the rule of a spec for a run.
std::unique_ptr<Policy> make_policy(const PolicySpec& spec, const PolicyContext& context);

} // namespace ponderscope
