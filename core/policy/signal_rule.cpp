// SPDX-License-Identifier: GPL-3.0-or-later
// signal: a recorded signal by step against a threshold, for gates and confidences that no method here knows.
#include "core/base/error.h"
#include "core/policy/kinds.h"
#include "core/trace/records.h"

#include <deque>
#include <limits>
#include <map>
#include <mutex>

namespace ponderscope {
namespace {

/// The enumerators of PolicySignal by the names of their signals.
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

std::mutex guard; ///< of what the two functions below keep

/// Names by number. References to them stay valid.
std::deque<std::string>& names() {
    static std::deque<std::string> all(std::begin(known_names), std::end(known_names));
    return all;
}

template <typename Compare>
std::unique_ptr<Policy> compared_with_theta(const PolicySpec& spec, const PolicyContext&) {
    return std::make_unique<policies::ThresholdRule<Compare>>(spec.kind->needs.front(), spec.number("theta"),
                                                              spec.kind->first_step, Compare{});
}

/// The first step whose value says something: differences to the step before are 0 at step 0.
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

PolicyKind make_signal_kind(PolicySignal signal, bool below) {
    const std::string& name = name_of(signal);
    return {.name = "signal:name=" + name + (below ? ",stops=below" : ",stops=above"),
            .rule = "the signal " + name + (below ? " is below theta" : " has reached theta"),
            .source = "",
            .parameters = {{.key = "theta",
                            .meaning = "in the signal's unit",
                            .low = std::numeric_limits<double>::lowest()}},
            .needs = {signal},
            .causal = signal != PolicySignal::nll && name != signal::rank, // these know the next token
            .first_step = first_step_of(signal),
            .make = below ? compared_with_theta<std::less<>> : compared_with_theta<std::greater_equal<>>};
}

} // namespace

PolicySignal policy_signal(std::string_view name) {
    const std::lock_guard lock(guard);
    std::deque<std::string>& all = names();
    const auto found = std::find(all.begin(), all.end(), name);
    const auto number = found - all.begin();
    if (number > std::numeric_limits<std::underlying_type_t<PolicySignal>>::max()) {
        throw InputError("expected fewer than 65536 names of signals in rules, found another.");
    }
    if (found == all.end()) {
        all.emplace_back(name);
    }
    return static_cast<PolicySignal>(number);
}

const std::string& name_of(PolicySignal signal) {
    const std::lock_guard lock(guard);
    return names().at(static_cast<std::size_t>(signal));
}

const PolicyKind& signal_kind(PolicySignal signal, OwnRule::Stops stops) {
    static std::mutex kinds_guard;
    static std::map<std::pair<PolicySignal, bool>, PolicyKind> kinds;
    const bool below = stops == OwnRule::Stops::below;
    const std::lock_guard lock(kinds_guard);
    const auto found = kinds.find({signal, below});
    return found != kinds.end()
               ? found->second
               : kinds.emplace(std::pair(signal, below), make_signal_kind(signal, below)).first->second;
}

} // namespace ponderscope
