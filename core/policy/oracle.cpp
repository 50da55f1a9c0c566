// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/oracle.h"

#include "core/base/error.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ponderscope {
namespace {

/// The first step with the least NLL + price · cost(k); 0 without a target.
template <typename Cost>
std::int32_t cheapest_step(const SignalColumns& columns, std::size_t token, std::int32_t ran, double price,
                           const Cost& cost) {
    const auto loss = [&](std::int64_t k) {
        return static_cast<double>(columns.column(PolicySignal::nll, k)[token]) +
               (price > 0 ? price * cost(k) : 0);
    };
    std::int32_t best = 0;
    double least = loss(0);
    for (std::int32_t k = 1; k <= ran; ++k) {
        if (const double here = loss(k); here < least) {
            least = here;
            best = k;
        }
    }
    return best;
}

/// Overrides choose(), because the best step depends on the later steps.
class OraclePolicy final : public Policy {
public:
    explicit OraclePolicy(double price) : price_(price) {}
    void stops(const SignalColumns&, std::size_t, std::int64_t, std::span<const double>,
               std::span<std::uint8_t> stop) const override {
        std::fill(stop.begin(), stop.end(), std::uint8_t{0});
    }
    void choose(const SignalColumns& columns, std::size_t first, std::span<const TokenPlace>,
                std::span<const std::int32_t> ran, std::span<std::int32_t> steps) const override {
        for (std::size_t i = 0; i < steps.size(); ++i) {
            steps[i] = cheapest_step(columns, first + i, ran[i], price_,
                                     [](std::int64_t k) { return static_cast<double>(k); });
        }
    }

private:
    double price_;
};

} // namespace

Oracle::Oracle(const ReplayTable& table, CostAxis axis) : table_(table) {
    if (axis == CostAxis::steps) {
        return;
    }
    if (!table.flops) {
        throw InputError(ErrorId::run_unsuited,
                         table.run + ": the trace has no FLOPs for its steps; record the run again.");
    }
    for (std::int64_t k = 0; k <= table.columns.max_steps(); ++k) {
        flops_.emplace_back(table.tokens());
        std::size_t first = 0;
        for (std::size_t s = 0; s < table.sequences.size(); ++s) {
            const auto n = static_cast<std::size_t>(table.sequences[s]);
            const std::vector<std::int32_t> steps(n, static_cast<std::int32_t>(k));
            const std::vector<std::int32_t> others(n, 0);
            table.flops->count(steps, false, table.windows[s], std::span(flops_.back()).subspan(first, n),
                               others);
            first += n;
        }
    }
}

Oracle::Turns Oracle::turns() const {
    constexpr std::size_t most = 4'000'000; // pairs of token and step
    const std::size_t stride =
        table_.tokens() * static_cast<std::size_t>(table_.columns.max_steps() + 1) / most + 1;
    struct Corner {
        double cost, nll;
    };
    const auto price_between = [](const Corner& a, const Corner& b) {
        return (a.nll - b.nll) / (b.cost - a.cost);
    };
    Turns found;
    std::vector<Corner> hull;
    for (std::size_t i = 0; i < table_.tokens(); ++i) {
        if (std::isnan(table_.nll[i]) || i % stride != 0) {
            continue;
        }
        hull.clear();
        for (std::int32_t k = 0; k <= table_.ran[i]; ++k) {
            const Corner here{cost(i, k),
                              static_cast<double>(table_.columns.column(PolicySignal::nll, k)[i])};
            if (!hull.empty() && here.nll >= hull.back().nll) {
                continue;
            }
            while (!hull.empty() && here.cost <= hull.back().cost) {
                hull.pop_back();
            }
            while (hull.size() > 1 &&
                   price_between(hull[hull.size() - 2], hull.back()) <= price_between(hull.back(), here)) {
                hull.pop_back();
            }
            hull.push_back(here);
        }
        found.base += hull.front().cost;
        ++found.tokens;
        for (std::size_t c = 1; c < hull.size(); ++c) {
            found.turns.emplace_back(price_between(hull[c - 1], hull[c]), hull[c].cost - hull[c - 1].cost);
        }
    }
    return found;
}

void Oracle::replay(double price, ReplayResult& result) const {
    result.steps.resize(table_.tokens());
    for (std::size_t i = 0; i < table_.tokens(); ++i) {
        result.steps[i] = cheapest_step(table_.columns, i, table_.ran[i], price,
                                        [&](std::int64_t k) { return cost(i, k); });
    }
    read_replay(table_, false, result);
    if (!flops_.empty()) {
        double sum = 0;
        for (std::size_t i = 0; i < table_.tokens(); ++i) {
            result.flops[i] = flops_[static_cast<std::size_t>(result.steps[i])][i];
            sum += static_cast<double>(result.flops[i]);
        }
        result.mean_flops = sum / static_cast<double>(table_.tokens());
    }
}

std::vector<double> oracle_prices(Oracle::Turns found, int most, std::span<const double> costs) {
    std::sort(found.turns.begin(), found.turns.end(), std::greater<>());
    const double tokens = static_cast<double>(std::max<std::int64_t>(found.tokens, 1));
    // A corner lies between two turns. A price midway between them selects this corner in spite of rounding.
    std::vector<double> prices, reached{found.base / tokens};
    double spent = found.base;
    for (std::size_t i = 0; i < found.turns.size(); ++i) {
        const double price = found.turns[i].first;
        if (prices.empty()) {
            prices.push_back(2 * price);
        }
        spent += found.turns[i].second;
        const double next = i + 1 < found.turns.size() ? found.turns[i + 1].first : 0;
        if (next > price * (1 - 1e-12)) {
            continue;
        }
        prices.push_back(i + 1 < found.turns.size() ? (price + next) / 2 : 0);
        reached.push_back(spent / tokens);
    }
    if (prices.empty()) {
        return {0};
    }
    std::set<std::size_t> chosen{0, prices.size() - 1};
    const auto at_least = [&](double cost) {
        return static_cast<std::size_t>(std::lower_bound(reached.begin(), reached.end(), cost) -
                                        reached.begin());
    };
    for (int i = 1; i + 1 < most; ++i) {
        chosen.insert(at_least(reached.front() + (reached.back() - reached.front()) * i / (most - 1)));
    }
    for (const double cost : costs) {
        const std::size_t vertex = at_least(cost);
        if (vertex > 0 && vertex < reached.size()) {
            chosen.insert({vertex - 1, vertex});
        }
    }
    std::vector<double> result;
    for (const std::size_t vertex : chosen) {
        if (vertex < prices.size()) {
            result.push_back(prices[vertex]);
        }
    }
    return result;
}

std::unique_ptr<Policy> oracle_policy(double price) {
    return std::make_unique<OraclePolicy>(price);
}

} // namespace ponderscope
