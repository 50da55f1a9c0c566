// SPDX-License-Identifier: GPL-3.0-or-later
// The kinds of policies: the number that each compares, its threshold, and the steps after which it decides.
#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/policy/oracle.h"
#include "core/policy/policy.h"
#include "core/trace/records.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace ponderscope {
namespace {

using Absent = PolicyParameter::Absent;
using Rule = std::unique_ptr<Policy>;

/// A rule that stops no token before a given step. `stops` is Policy::stops from this step on, `number` is
/// Policy::per_token for one token.
class StepRule final : public Policy {
public:
    using Stops = std::function<void(const SignalColumns& columns, std::size_t first, std::int64_t k,
                                     std::span<const double> numbers, std::span<std::uint8_t> stop)>;
    using Number = std::function<double(const TokenPlace& place)>;

    StepRule(std::int64_t first_step, Stops stops, Number number = {})
        : first_step_(first_step), stops_(std::move(stops)), number_(std::move(number)) {}

    void per_token(std::span<const TokenPlace> places, std::span<double> numbers) const override {
        if (number_) {
            std::ranges::transform(places, numbers.begin(), number_);
        }
    }
    void stops(const SignalColumns& columns, std::size_t first, std::int64_t k,
               std::span<const double> numbers, std::span<std::uint8_t> stop) const override {
        if (k < first_step_) {
            std::ranges::fill(stop, std::uint8_t{0});
        } else {
            stops_(columns, first, k, numbers, stop);
        }
    }

private:
    std::int64_t first_step_;
    Stops stops_;
    Number number_;
};

/// Every token stops after step n.
Rule stops_after(std::int64_t n) {
    return std::make_unique<StepRule>(n, [](const auto&, auto, auto, auto, std::span<std::uint8_t> stop) {
        std::ranges::fill(stop, std::uint8_t{1});
    });
}

/// Stops a token if `compare` holds for signal and threshold, in fp32 as in the engine. NaN never stops.
template <typename Compare>
Rule compares(PolicySignal signal, double threshold, std::int64_t first_step, Compare compare) {
    return std::make_unique<StepRule>(first_step,
                                      [signal, compare, bound = static_cast<float>(threshold)](
                                          const SignalColumns& columns, std::size_t first, std::int64_t k,
                                          std::span<const double>, std::span<std::uint8_t> stop) {
                                          const float* now = columns.column(signal, k).data() + first;
                                          for (std::size_t i = 0; i < stop.size(); ++i) {
                                              stop[i] = compare(now[i], bound) ? 1 : 0;
                                          }
                                      });
}

/// Compares the kind's signal with theta, from the kind's first step on.
template <typename Compare>
Rule compares_with_theta(const PolicySpec& spec, const PolicyContext&) {
    return compares(spec.kind->needs.front(), spec.number("theta"), spec.kind->first_step, Compare{});
}

/// A threshold from 0 to 1000; without a preset it must be given.
PolicyParameter theta(std::string meaning, std::optional<double> preset = std::nullopt) {
    return {.key = "theta",
            .meaning = std::move(meaning),
            .high = 1000,
            .absent = preset ? Absent::preset : Absent::refused,
            .value = preset.value_or(0)};
}

PolicyKind full() {
    return {.name = "full",
            .rule = "nothing halts: every step runs",
            .make = [](const PolicySpec&, const PolicyContext& context) {
                return stops_after(context.max_steps);
            }};
}

/// The method's own rule with another tau. The rule compares with tau:
///   AdaPonderLM (arXiv 2603.01914) and Think-at-Hard (2511.08577): the gate;   PonderLM-3 (2603.02023): the
///   tail mass;   adaptive latent CoT (2602.08220): the reach;   Ouro (2510.25741): the cumulative exit
///   probability.   OwnRule::Stops says which values stop a token.
PolicyKind learned() {
    return {.name = "learned",
            .rule = "the model's own gate or router is below theta, or its running sum reaches theta",
            .source = "arXiv 2603.01914, 2603.02023, 2602.08220, 2510.25741, 2511.08577",
            .parameters = {{.key = "theta",
                            .meaning = "threshold of the gate or router; default: the model's own",
                            .low = std::numeric_limits<double>::lowest(),
                            .absent = Absent::from_run}},
            .needs = {PolicySignal::continue_value},
            .make = [](const PolicySpec& spec, const PolicyContext& context) -> Rule {
                if (context.exit_step && !spec.has("theta")) {
                    return stops_after(*context.exit_step);
                }
                const double tau = spec.has("theta") ? spec.number("theta") : context.own_threshold;
                if (std::isnan(tau)) {
                    throw InputError(
                        ErrorId::policy_unsuited,
                        "Policy learned: this run's model has no threshold of its own; write one, as "
                        "in learned:theta=0.5.");
                }
                switch (context.own_rule) {
                case OwnRule::Stops::at_least:
                    return compares(PolicySignal::continue_value, tau, 0, std::greater_equal<>{});
                case OwnRule::Stops::at_most:
                    return compares(PolicySignal::continue_value, tau, 0, std::less_equal<>{});
                case OwnRule::Stops::below:
                    break;
                }
                return compares(PolicySignal::continue_value, tau, 0, std::less<>{});
            }};
}

PolicyKind fixed() {
    return {.name = "fixed",
            .rule = "every token stops after step n",
            .parameters = {{.key = "n", .meaning = "last step, from 0 to K", .whole = true, .high = 1e6}},
            .make = [](const PolicySpec& spec, const PolicyContext& context) {
                const auto n = static_cast<std::int64_t>(spec.whole("n"));
                if (n > context.max_steps) {
                    throw InputError(ErrorId::policy_value,
                                     "Policy " + spec.text() + ": expected n from 0 to " +
                                         std::to_string(context.max_steps) +
                                         ", the last step of the run, found " + std::to_string(n) + ".");
                }
                return stops_after(n);
            }};
}

/// Share of the tokens that run step k >= 1, as a function of a parameter x in [0, 1].
using Survival = double (*)(double x, std::int64_t k);

double falls_linearly(double x, std::int64_t k) {
    return std::max(0.0, 1.0 - static_cast<double>(k) * x);
}
double falls_geometrically(double x, std::int64_t k) {
    return std::pow(x, static_cast<double>(k));
}

/// The x for which the shares of steps 1..K add up to \p rate, the mean steps.
double solve(Survival survival, std::int64_t max_steps, double rate) {
    const auto sum = [&](double x) {
        double total = 0;
        for (std::int64_t k = 1; k <= max_steps; ++k) {
            total += survival(x, k);
        }
        return total;
    };
    const bool rises = sum(1) > sum(0);
    double low = 0;
    double high = 1;
    for (int i = 0; i < 100; ++i) {
        const double middle = (low + high) / 2;
        ((sum(middle) < rate) == rises ? low : high) = middle;
    }
    return (low + high) / 2;
}

/// Random pruning at a wanted mean number of steps (AdaPonderLM's baselines, arXiv 2603.01914). Each token
/// has one draw u_t, SplitMix64 of seed, sequence and position. It stops at k iff u_t >= a_{k+1}, the share
/// of tokens that run step k + 1.
template <Survival survival>
Rule prunes(const PolicySpec& spec, const PolicyContext& context) {
    const double rate = spec.has("rate") ? spec.number("rate") : context.learned_rate;
    if (std::isnan(rate)) {
        throw InputError(ErrorId::policy_unsuited,
                         "Policy " + spec.text() +
                             ": the default rate is the mean steps of the model's own rule, and this run has "
                             "no such rule; give a rate, as in " +
                             spec.kind->name + ":rate=1.2.");
    }
    if (rate > static_cast<double>(context.max_steps)) {
        throw InputError(ErrorId::policy_value, "Policy " + spec.text() + ": expected a rate from 0 to " +
                                                    std::to_string(context.max_steps) +
                                                    ", the steps of the run, found a larger rate.");
    }
    const double x = solve(survival, context.max_steps, rate);
    return std::make_unique<StepRule>(
        0,
        [x](const SignalColumns&, std::size_t, std::int64_t k, std::span<const double> numbers,
            std::span<std::uint8_t> stop) {
            const double runs_next = survival(x, k + 1);
            for (std::size_t i = 0; i < stop.size(); ++i) {
                stop[i] = numbers[i] >= runs_next ? 1 : 0;
            }
        },
        [seed = spec.whole("seed")](const TokenPlace& place) {
            return token_draw(seed, place.sequence, place.position);
        });
}

PolicyKind pruned(std::string name, std::string falls,
                  Rule (*make)(const PolicySpec&, const PolicyContext&)) {
    return {.name = std::move(name),
            .rule =
                "at random, so that the share of running tokens falls by the same " + falls + " each step",
            .source = "arXiv 2603.01914, baselines",
            .parameters = {{.key = "rate",
                            .meaning = "wanted mean number of steps; default: the mean of learned",
                            .high = 1e6,
                            .absent = Absent::from_run},
                           {.key = "seed",
                            .meaning = "seed of the draws",
                            .whole = true,
                            .high = 0x1p64,
                            .absent = Absent::preset,
                            .value = std::uint64_t{20261122}}},
            .make = make};
}

PolicyKind oracle() {
    return {.name = "oracle",
            .rule = "the step with the least NLL + lambda · step; a bound and not a policy, because this "
                    "rule knows the next token",
            .parameters = {{.key = "lambda",
                            .meaning = "price of a step in nats; default 0: the lowest NLL at any cost",
                            .high = 1e6,
                            .absent = Absent::from_run}},
            .needs = {PolicySignal::nll},
            .causal = false,
            .first_step = 1,
            .compared =
                [](const SignalColumns& columns, std::size_t token, const TokenPlace&, std::int64_t k) {
                    const auto nll = [&](std::int64_t step) {
                        return static_cast<double>(columns.column(PolicySignal::nll, step)[token]);
                    };
                    return (nll(0) - nll(k)) / static_cast<double>(k);
                },
            .make =
                [](const PolicySpec& spec, const PolicyContext&) {
                    return oracle_policy(spec.has("lambda") ? spec.number("lambda") : 0);
                }};
}

/// CALM's threshold (arXiv 2207.07061) decays with the position t: min(1, max(0, lambda (0.9 + 0.1
/// e^{-4t/N}))). Returns the factor of lambda.
double decay(const TokenPlace& place) {
    return 0.9 + 0.1 * std::exp(-4.0 * place.position / place.length);
}

template <PolicySignal signal, std::int64_t first>
PolicyKind calm(std::string name, std::string rule, std::string source) {
    return {.name = std::move(name),
            .rule = std::move(rule),
            .source = "arXiv 2207.07061, " + source,
            .parameters = {{.key = "lambda",
                            .meaning = "threshold, before it decays along the sequence",
                            .high = 2}},
            .needs = {signal},
            .first_step = first,
            .compared =
                [](const SignalColumns& columns, std::size_t token, const TokenPlace& place, std::int64_t k) {
                    return static_cast<double>(columns.column(signal, k)[token]) / decay(place);
                },
            .make = [](const PolicySpec& spec, const PolicyContext&) -> Rule {
                return std::make_unique<StepRule>(
                    first,
                    [](const SignalColumns& columns, std::size_t token, std::int64_t k,
                       std::span<const double> numbers, std::span<std::uint8_t> stop) {
                        const float* now = columns.column(signal, k).data() + token;
                        for (std::size_t i = 0; i < stop.size(); ++i) {
                            stop[i] = static_cast<double>(now[i]) >= numbers[i] ? 1 : 0;
                        }
                    },
                    [lambda = spec.number("lambda")](const TokenPlace& place) {
                        return std::clamp(lambda * decay(place), 0.0, 1.0);
                    });
            }};
}

PolicyKind entropy() {
    return {.name = "entropy",
            .rule = "the entropy of the read-out is below theta nats",
            .parameters = {theta("nats; there is no published default")},
            .needs = {PolicySignal::entropy},
            .make = compares_with_theta<std::less<>>};
}

double entropy_change(const SignalColumns& columns, std::size_t token, const TokenPlace&, std::int64_t k) {
    return std::abs(static_cast<double>(columns.column(PolicySignal::entropy, k)[token]) -
                    static_cast<double>(columns.column(PolicySignal::entropy, k - 1)[token]));
}

PolicyKind entropy_difference() {
    return {.name = "entropy_difference",
            .rule = "the entropy changed by less than theta nats in the last step",
            .source = "arXiv 2502.05171, with theta 1e-3",
            .parameters = {theta("nats", 1e-3)},
            .needs = {PolicySignal::entropy},
            .first_step = 1,
            .compared = entropy_change,
            .make = [](const PolicySpec& spec, const PolicyContext&) -> Rule {
                return std::make_unique<StepRule>(
                    1, [bound = spec.number("theta")](const SignalColumns& columns, std::size_t first,
                                                      std::int64_t k, std::span<const double>,
                                                      std::span<std::uint8_t> stop) {
                        for (std::size_t i = 0; i < stop.size(); ++i) {
                            stop[i] = entropy_change(columns, first + i, {}, k) < bound ? 1 : 0;
                        }
                    });
            }};
}

PolicyKind kl() {
    return {.name = "kl",
            .rule = "D_KL(p_k−1 ‖ p_k), from the previous step to this step, is below theta nats",
            .source = "arXiv 2502.05171, with theta 5e-4",
            .parameters = {theta("nats", 5e-4)},
            .needs = {PolicySignal::kl},
            .first_step = 1,
            .make = compares_with_theta<std::less<>>};
}

PolicyKind latent_difference() {
    return {.name = "latent_difference",
            .rule = "the state moved by less than theta of its length in the last step",
            .source = "arXiv 2502.05171, with theta 0.03",
            .parameters = {theta("of the state's length", 0.03)},
            .needs = {PolicySignal::latent},
            .first_step = 1,
            .make = compares_with_theta<std::less<>>};
}

PolicyKind second_order() {
    return {.name = "second_order",
            .rule = "the last two moves of the state differ by less than theta of the last move's length",
            .source = "arXiv 2509.23314, there with two hits in a row and without the division",
            .parameters = {theta("of the last move's length"),
                           {.key = "hits",
                            .meaning = "steps in a row",
                            .whole = true,
                            .low = 1,
                            .high = 16,
                            .absent = Absent::preset,
                            .value = std::uint64_t{1}}},
            .needs = {PolicySignal::acceleration},
            .first_step = 2, // an acceleration needs three states
            .make = [](const PolicySpec& spec, const PolicyContext&) -> Rule {
                const auto hits = static_cast<std::int64_t>(spec.whole("hits"));
                return std::make_unique<StepRule>(
                    hits + 1, [hits, bound = static_cast<float>(spec.number("theta"))](
                                  const SignalColumns& columns, std::size_t first, std::int64_t k,
                                  std::span<const double>, std::span<std::uint8_t> stop) {
                        std::ranges::fill(stop, std::uint8_t{1});
                        for (std::int64_t step = k; step > k - hits; --step) {
                            const float* now =
                                columns.column(PolicySignal::acceleration, step).data() + first;
                            for (std::size_t i = 0; i < stop.size(); ++i) {
                                stop[i] = stop[i] != 0 && now[i] < bound ? 1 : 0; // NaN never stops a token
                            }
                        }
                    });
            }};
}

PolicyKind argmax_stable() {
    return {.name = "argmax_stable",
            .rule = "the most likely token did not change over the last n steps",
            .source = "arXiv 2502.05171, with n 5",
            .parameters = {{.key = "n",
                            .meaning = "transitions",
                            .whole = true,
                            .low = 1,
                            .high = 1e6,
                            .absent = Absent::preset,
                            .value = std::uint64_t{5}}},
            .needs = {PolicySignal::argmax},
            .first_step = 1,
            .make = [](const PolicySpec& spec, const PolicyContext&) -> Rule {
                const auto n = static_cast<std::int64_t>(spec.whole("n"));
                return std::make_unique<StepRule>(n, [n](const SignalColumns& columns, std::size_t first,
                                                         std::int64_t k, std::span<const double>,
                                                         std::span<std::uint8_t> stop) {
                    std::ranges::fill(stop, std::uint8_t{1});
                    const float* now = columns.column(PolicySignal::argmax, k).data() + first;
                    for (std::int64_t back = 1; back <= n; ++back) {
                        const float* then = columns.column(PolicySignal::argmax, k - back).data() + first;
                        for (std::size_t i = 0; i < stop.size(); ++i) {
                            stop[i] = stop[i] != 0 && now[i] == then[i] ? 1 : 0;
                        }
                    }
                });
            }};
}

/// The signal names of the enumerators of PolicySignal.
constexpr const char* known_names[policy_signals] = {
    signal::nll,
    signal::entropy,
    signal::margin,
    signal::argmax,
    signal::kl_previous_current,
    signal::cosine,
    signal::latent_difference,
    "",
    signal::acceleration,
};

std::mutex guard; ///< guards signal_names()

/// Signal names by PolicySignal. References to the names stay valid.
std::deque<std::string>& signal_names() {
    static std::deque<std::string> all(std::begin(known_names), std::end(known_names));
    return all;
}

/// The first step at which the signal has a meaning. Differences to the previous step are 0 at step 0.
std::int64_t first_step_of(PolicySignal signal) {
    switch (signal) {
    case PolicySignal::kl:
    case PolicySignal::cosine:
    case PolicySignal::latent:
        return 1;
    case PolicySignal::acceleration:
        return 2;
    default:
        return name_of(signal) == signal::kl_current_previous ? 1 : 0;
    }
}

PolicyKind make_signal_kind(PolicySignal signal, bool stops_below) {
    const std::string& name = name_of(signal);
    return {.name = "signal:name=" + name + (stops_below ? ",stops=below" : ",stops=above"),
            .rule = "the signal " + name + (stops_below ? " is below theta" : " is at least theta"),
            .parameters = {{.key = "theta",
                            .meaning = "in the signal's unit",
                            .low = std::numeric_limits<double>::lowest()}},
            .needs = {signal},
            .causal = signal != PolicySignal::nll && name != signal::rank, // nll and rank know the next token
            .first_step = first_step_of(signal),
            .make =
                stops_below ? compares_with_theta<std::less<>> : compares_with_theta<std::greater_equal<>>};
}

} // namespace

std::span<const PolicyKind> policy_kinds() {
    static const std::array kinds{
        full(),
        learned(),
        fixed(),
        pruned("uniform", "amount", prunes<falls_linearly>),
        pruned("geometric", "factor", prunes<falls_geometrically>),
        oracle(),
        calm<PolicySignal::margin, 0>("calm_margin",
                                      "the two largest probabilities differ by lambda or more (decaying)",
                                      "softmax response"),
        calm<PolicySignal::cosine, 1>("calm_cosine",
                                      "cosine of the state and that of the step before is lambda or more "
                                      "(decaying)",
                                      "hidden-state saturation"),
        entropy(),
        entropy_difference(),
        kl(),
        latent_difference(),
        second_order(),
        argmax_stable(),
    };
    return kinds;
}

PolicySignal policy_signal(std::string_view name) {
    const std::lock_guard lock(guard);
    std::deque<std::string>& all = signal_names();
    const auto found = std::find(all.begin(), all.end(), name);
    const auto number = found - all.begin();
    if (number > std::numeric_limits<std::underlying_type_t<PolicySignal>>::max()) {
        throw InputError(ErrorId::input_invalid,
                         "expected at most 65536 signal names in rules, found more; use fewer names.");
    }
    if (found == all.end()) {
        all.emplace_back(name);
    }
    return static_cast<PolicySignal>(number);
}

const std::string& name_of(PolicySignal signal) {
    const std::lock_guard lock(guard);
    return signal_names().at(static_cast<std::size_t>(signal));
}

const PolicyKind& signal_kind(PolicySignal signal, OwnRule::Stops stops) {
    static std::mutex kinds_guard;
    static std::map<std::pair<PolicySignal, bool>, PolicyKind> kinds;
    const bool stops_below = stops == OwnRule::Stops::below;
    const std::lock_guard lock(kinds_guard);
    const auto found = kinds.find({signal, stops_below});
    return found != kinds.end()
               ? found->second
               : kinds.emplace(std::pair(signal, stops_below), make_signal_kind(signal, stops_below))
                     .first->second;
}

} // namespace ponderscope
