// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/replay.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/base/words.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
std::vector<const PolicyKind*> ReplayTable::kinds() const {
    std::vector<const PolicyKind*> found;
    for (const PolicyKind& kind : policy_kinds()) {
        if (can(kind)) {
            found.push_back(&kind);
        }
    }
    for (const std::string& name : by_step) {
        const PolicySignal signal = policy_signal(name);
        if (is_named(signal) && columns.has(signal)) {
            found.push_back(&signal_kind(signal, OwnRule::Stops::below));
            found.push_back(&signal_kind(signal, OwnRule::Stops::at_least));
        }
    }
    return found;
}

std::size_t ReplayTable::number_of(const PolicyKind& kind) const {
    const std::span<const PolicyKind> usual = policy_kinds();
    if (&kind >= usual.data() && &kind < usual.data() + usual.size()) {
        return static_cast<std::size_t>(&kind - usual.data());
    }
    std::size_t number = usual.size() + 1; // the number after the kinds is the best blind rule's
    for (const PolicyKind* one : kinds()) {
        if (one == &kind) {
            break;
        }
        number += one->is_signal_rule() ? 1 : 0;
    }
    return number;
}

bool ReplayTable::can(const PolicyKind& kind) const {
    return std::all_of(kind.needs.begin(), kind.needs.end(),
                       [&](PolicySignal signal) { return columns.has(signal); });
}

void ReplayTable::require(const PolicySpec& spec) const {
    for (const PolicySignal signal : spec.kind->needs) {
        if (columns.has(signal)) {
            continue;
        }
        if (signal == PolicySignal::continue_value) {
            throw InputError(ErrorId::policy_unsuited,
                             run + ": policy learned needs a gate or router, and this run's model has none "
                                   "or the trace lacks its values; record a model that halts (adaponderlm, "
                                   "ponderlm3, adaptive_latent_cot), give your own run its rule "
                                   "(Writer.run(rule=...) in Python), or choose another policy.");
        }
        throw InputError(ErrorId::policy_unsuited,
                         run + ": policy " + spec.kind->name + " needs the signal " + name_of(signal) +
                             " at each step, which this trace lacks; " +
                             (is_named(signal) ? "its signals by step: " + joined(by_step) + "."
                                               : "record the run again with --record steps."));
    }
}

void ReplayTable::finish() {
    halted = std::any_of(ran.begin(), ran.end(), [&](std::int32_t k) { return k < columns.max_steps(); });
    context.max_steps = columns.max_steps();
    context.learned_rate = not_a_number;
    if (columns.has(PolicySignal::continue_value) && context.has_own_rule()) {
        context.learned_rate = replay(*this, PolicySpec::parse("learned")).mean_steps;
    }
}

ReplayResult replay(const ReplayTable& table, const PolicySpec& spec) {
    ReplayResult result;
    replay(table, spec, result);
    return result;
}

void replay(const ReplayTable& table, const PolicySpec& spec, ReplayResult& result) {
    table.require(spec);
    const std::unique_ptr<Policy> policy = make_policy(spec, table.context);
    result.steps.resize(table.tokens());
    policy->choose(table.columns, 0, table.places, table.ran, result.steps);
    read_replay(table, spec.kind->reads_head(), result);
}

void read_replay(const ReplayTable& table, bool by_head, ReplayResult& result) {
    const std::size_t tokens = table.tokens();
    result.nll.resize(tokens);
    const auto last = static_cast<std::size_t>(table.columns.max_steps());
    std::vector<const float*> nll(last + 1);
    for (std::size_t k = 0; k <= last; ++k) {
        nll[k] = table.columns.column(PolicySignal::nll, static_cast<std::int64_t>(k)).data();
    }
    result.histogram.assign(last + 1, 0);
    result.scored = 0;
    double sum = 0;
    for (std::size_t i = 0; i < tokens; ++i) {
        const auto k = static_cast<std::size_t>(result.steps[i]);
        const bool target = !std::isnan(table.nll[i]);
        const float value = target ? nll[k][i] : std::numeric_limits<float>::quiet_NaN();
        result.nll[i] = value;
        if (target) {
            sum += static_cast<double>(value);
            ++result.scored;
            ++result.histogram[k];
        }
    }
    result.flops.clear();
    double flops = not_a_number;
    if (table.flops && tokens > 0) {
        result.flops.resize(tokens);
        std::size_t first = 0;
        for (std::size_t i = 0; i < table.sequences.size(); ++i) {
            const auto n = static_cast<std::size_t>(table.sequences[i]);
            table.flops->count(std::span(result.steps).subspan(first, n), by_head, table.windows[i],
                               std::span(result.flops).subspan(first, n));
            first += n;
        }
        flops = 0;
        for (const std::int64_t one : result.flops) {
            flops += static_cast<double>(one);
        }
    }
    double ran = 0;
    for (std::size_t k = 0; k <= last; ++k) {
        ran += static_cast<double>(k) * static_cast<double>(result.histogram[k]);
    }
    const double scored = result.scored > 0 ? static_cast<double>(result.scored) : not_a_number;
    result.mean_steps = ran / scored;
    result.mean_nll = sum / scored;
    result.mean_flops = flops / static_cast<double>(tokens);
}

} // namespace ponderscope
