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

/// One number that a policy takes.
struct PolicyParameter {
    enum class Absent : std::uint8_t {
        refused,  ///< must be given
        preset,   ///< `value` then
        from_run, ///< decided by the run that the policy is used on
    };
    std::string key;
    std::string meaning; ///< for help and tooltips
    bool whole = false;  ///< a 64-bit number without sign
    double low = 0;      ///< lowest and highest value, both allowed; not for seeds
    double high = std::numeric_limits<double>::max();
    Absent absent = Absent::refused;
    PolicySpec::Value value = 0.0; ///< the preset
};

/// Facts about the run for a rule, beside the signals.
struct PolicyContext {
    std::int64_t max_steps = 0; ///< K
    /// The threshold of the model's own rule; NaN if it has none.
    double own_threshold = std::numeric_limits<double>::quiet_NaN();
    /// The step at which the config stops every token, independent of tau.
    std::optional<std::int64_t> exit_step = std::nullopt;
    /// When the model's own rule stops a token (method_info.h).
    OwnRule::Stops own_rule = OwnRule::Stops::below;
    /// Mean steps of `learned` at that tau, over tokens with a target; NaN: the model has no such number.
    double learned_rate = std::numeric_limits<double>::quiet_NaN();

    /// Whether `learned` needs no theta.
    [[nodiscard]] bool has_own_rule() const { return exit_step || !std::isnan(own_threshold); }
};

/// A rule that stops each token at the first k in 0..K-1 for which stops() is true, else at K (methods.md
/// section 9). Immutable; threads may share it.
class Policy {
public:
    virtual ~Policy() = default;

    /// A number of each token that does not depend on the step (a draw, a bound that decays with the
    /// position). It is an argument of stops().
    virtual void per_token(std::span<const TokenPlace> places, std::span<double> numbers) const;

    /// stop[i] = 1 iff the rule stops token first + i after step \p k < K, else 0. Reads no step above k. The
    /// answers for tokens that stopped before are ignored.
    virtual void stops(const SignalColumns& columns, std::size_t first, std::int64_t k,
                       std::span<const double> numbers, std::span<std::uint8_t> stop) const = 0;

    /// The step of tokens [first, first + steps.size()), where token i is recorded up to step \p ran[i]:
    /// min(rule, ran). The oracle, which is not causal, has its own.
    virtual void choose(const SignalColumns& columns, std::size_t first, std::span<const TokenPlace> places,
                        std::span<const std::int32_t> ran, std::span<std::int32_t> steps) const;
};

/// A kind of policy, as data for help, parser, sliders and messages (kinds.cpp).
struct PolicyKind {
    /// The name of a rule over a named signal includes two of its keys: "signal:name=gate,stops=below".
    std::string name;
    std::string rule;                             ///< when a token stops, for help and window
    std::string source = {};                      ///< paper, or "" for none
    std::vector<PolicyParameter> parameters = {}; ///< the first is the threshold that sweeps and sliders move
    std::vector<PolicySignal> needs = {};         ///< recorded signals
    bool causal = true;                           ///< false: a bound, not a policy that can run
    std::int64_t first_step = 0; ///< the first that is judged, with other parameters as preset
    /// The number of a token at step k >= first_step that is compared with the threshold, in its unit;
    /// nullptr: the first of `needs` itself.
    double (*compared)(const SignalColumns& columns, std::size_t token, const TokenPlace& place,
                       std::int64_t k) = nullptr;
    /// InputError when the spec does not fit the run ("fixed:n=7" with K = 3).
    std::unique_ptr<Policy> (*make)(const PolicySpec& spec, const PolicyContext& context) = nullptr;

    /// Whether the rule needs the read-out, so that a run under it computes the head to decide.
    [[nodiscard]] bool reads_head() const;
    [[nodiscard]] const PolicyParameter* find(std::string_view key) const; ///< nullptr: no such key
    /// The parameter that a sweep of \p key varies; "threshold" is the first. nullptr: none.
    [[nodiscard]] const PolicyParameter* find_swept(std::string_view key) const;
    /// Whether the engine can run a model under it: it does not use the next token, nor a signal known only
    /// by name.
    [[nodiscard]] bool can_run() const;
    /// Whether the kind comes from signal_kind().
    [[nodiscard]] bool is_signal_rule() const { return name.find(':') != std::string::npos; }
    /// The text of a policy of this kind with \p key=value pairs: NAME:KEY=VALUE.
    [[nodiscard]] std::string with_keys(const std::string& pairs) const;
};

/// All kinds but the rules over a signal by name, in the order of the users' page.
std::span<const PolicyKind> policy_kinds();
/// The rule that compares a recorded signal by step with a threshold: it stops a token when the signal is
/// below theta, or, with OwnRule::Stops::at_least, has reached it. One object for each signal and direction;
/// it lives as long as the program. Threads may call it.
const PolicyKind& signal_kind(PolicySignal signal, OwnRule::Stops stops);
/// A kind by its name ("entropy"; of rules over a signal also "signal:name=gate", without `stops`); nullptr:
/// there is none. InputError: a rule over a signal with other mistakes.
const PolicyKind* find_policy_kind(std::string_view name);

/// The rule that a spec means for a run.
std::unique_ptr<Policy> make_policy(const PolicySpec& spec, const PolicyContext& context);

} // namespace ponderscope
