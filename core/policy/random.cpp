// SPDX-License-Identifier: GPL-3.0-or-later
// uniform and geometric: random pruning at a wanted mean number of steps (AdaPonderLM's baselines, arXiv
// 2603.01914). One draw u_t a token, by SplitMix64 of seed, sequence and position; the token stops at k iff
// u_t >= a_{k+1}.
#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/policy/kinds.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ponderscope::policies {
namespace {

/// Share of the tokens that run step k >= 1.
using Survival = double (*)(double x, std::int64_t k);

double falls_linearly(double x, std::int64_t k) {
    return std::max(0.0, 1.0 - static_cast<double>(k) * x);
}
double falls_geometrically(double x, std::int64_t k) {
    return std::pow(x, static_cast<double>(k));
}

/// x in [0, 1] such that the survivals of steps 1..K add up to \p rate.
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

class RandomPruning final : public Policy {
public:
    RandomPruning(Survival survival, std::int64_t max_steps, double rate, std::uint64_t seed) : seed_(seed) {
        const double x = solve(survival, max_steps, rate);
        for (std::int64_t k = 0; k < max_steps; ++k) {
            runs_next_.push_back(survival(x, k + 1));
        }
    }

    void per_token(std::span<const TokenPlace> places, std::span<double> numbers) const override {
        std::uint32_t sequence = 0;
        std::uint64_t stream = splitmix64(seed_, 0);
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (places[i].sequence != sequence) {
                sequence = places[i].sequence;
                stream = splitmix64(seed_, sequence);
            }
            numbers[i] = unit_interval(splitmix64(stream, places[i].position));
        }
    }

    void stops(const SignalColumns&, std::size_t, std::int64_t k, std::span<const double> numbers,
               std::span<std::uint8_t> stop) const override {
        const double bound = runs_next_[static_cast<std::size_t>(k)];
        for (std::size_t i = 0; i < stop.size(); ++i) {
            stop[i] = numbers[i] >= bound ? 1 : 0;
        }
    }

private:
    std::uint64_t seed_;
    std::vector<double> runs_next_; ///< a_{k+1} for k = 0..K-1
};

template <Survival survival>
std::unique_ptr<Policy> make(const PolicySpec& spec, const PolicyContext& context) {
    const double rate = spec.has("rate") ? spec.number("rate") : context.learned_rate;
    if (std::isnan(rate)) {
        throw InputError("Policy " + spec.text() +
                         ": without a rate it takes the mean steps of the model's own rule, and this run has "
                         "none; write one, as in " +
                         spec.kind->name + ":rate=1.2.");
    }
    if (rate > static_cast<double>(context.max_steps)) {
        throw InputError("Policy " + spec.text() + ": expected a rate from 0 to " +
                         std::to_string(context.max_steps) + ", the steps of the run, found a larger one.");
    }
    return std::make_unique<RandomPruning>(survival, context.max_steps, rate, spec.whole("seed"));
}

std::vector<PolicyParameter> random_parameters() {
    return {{.key = "rate",
             .meaning = "wanted mean number of steps; that of learned when absent",
             .high = 1e6,
             .absent = PolicyParameter::Absent::from_run},
            {.key = "seed",
             .meaning = "of the draws",
             .whole = true,
             .high = 0x1p64,
             .absent = PolicyParameter::Absent::preset,
             .value = std::uint64_t{20261122}}};
}

} // namespace

PolicyKind uniform() {
    return {.name = "uniform",
            .rule = "at random, the share of running tokens falling by the same amount each step",
            .source = "arXiv 2603.01914, baselines",
            .parameters = random_parameters(),
            .needs = {},
            .make = make<falls_linearly>};
}

PolicyKind geometric() {
    return {.name = "geometric",
            .rule = "at random, the share of running tokens falling by the same factor each step",
            .source = "arXiv 2603.01914, baselines",
            .parameters = random_parameters(),
            .needs = {},
            .make = make<falls_geometrically>};
}

} // namespace ponderscope::policies
