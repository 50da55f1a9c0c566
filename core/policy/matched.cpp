// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/matched.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/base/words.h"
#include "core/policy/thresholds.h"
#include "core/stats/front.h"
#include "core/stats/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ponderscope {
namespace {

/// Linear interpolation at \p cost between points with ascending costs; constant beyond the ends. Of points
/// with equal costs, the last counts.
double at_cost(std::span<const double> costs, std::span<const double> values, double cost) {
    const auto right = std::upper_bound(costs.begin(), costs.end(), cost);
    if (right == costs.begin()) {
        return values.front();
    }
    const auto r = static_cast<std::size_t>(right - costs.begin());
    if (r == costs.size()) {
        return values.back();
    }
    const double share = (cost - costs[r - 1]) / (costs[r] - costs[r - 1]);
    return values[r - 1] + share * (values[r] - values[r - 1]);
}

/// Whether a rule can spend \p cost. On a hull it may leave some of the cost unspent, so any cost above the
/// lowest one is reached.
bool reaches(std::span<const double> costs, double cost, bool hull) {
    const double slack = 1e-9 * std::abs(cost) + 1e-12;
    return !costs.empty() && costs.front() <= cost + slack && (hull || costs.back() >= cost - slack);
}

/// NLL of a rule at the wanted costs of one axis, on the sample and on every bootstrap replicate.
struct Axis {
    std::vector<double> values;                  ///< [costs]; NaN: not reached
    std::vector<std::vector<double>> replicates; ///< [costs][replicates]
};

const std::vector<double>& cost_of(const ScoredSetting& setting, CostAxis axis) {
    return axis == CostAxis::steps ? setting.steps : setting.flops;
}

/// The NLL at \p cost of settings with ascending mean costs.
double nll_at(std::span<const double> costs, std::span<const double> nll, bool hull, double cost) {
    if (!hull) {
        return at_cost(costs, nll, cost);
    }
    std::vector<FrontPoint> points;
    for (std::size_t s = 0; s < costs.size(); ++s) {
        points.push_back({costs[s], nll[s]});
    }
    return loss_at(convex_front(points), cost);
}

class Matcher {
public:
    Matcher(const RowLayout& rows, const BootstrapOptions& options) : rows_(rows), options_(options) {}

    /// Determines the resampling from the NLL of the rule's last setting and its gain over the first setting.
    void settle(const MatchedRule& rule) {
        const std::vector<double>& dearest = rule.settings.back().nll;
        std::vector<double> gain = rule.settings.front().nll;
        for (std::size_t i = 0; i < gain.size(); ++i) {
            gain[i] -= dearest[i];
        }
        const std::span<const double> series[] = {dearest, gain};
        resampling_ = rows_.resampling(series, options_);
    }
    [[nodiscard]] const Resampling& resampling() const { return resampling_; }

    [[nodiscard]] std::vector<MatchedPoint> points(const std::vector<ScoredSetting>& settings) const {
        std::vector<MatchedPoint> found;
        for (const ScoredSetting& one : settings) {
            found.push_back({one.policy, rows_.mean(one.steps),
                             one.flops.empty() ? not_a_number : rows_.mean(one.flops), rows_.mean(one.nll)});
        }
        return found;
    }

    [[nodiscard]] Axis axis(const MatchedRule& rule, CostAxis which,
                            const std::vector<double>& wanted) const {
        const std::vector<ScoredSetting>& given =
            which == CostAxis::flops && !rule.for_flops.empty() ? rule.for_flops : rule.settings;
        Axis axis;
        if (wanted.empty() || cost_of(given.front(), which).empty()) {
            axis.values.assign(wanted.size(), not_a_number);
            axis.replicates.assign(
                wanted.size(),
                std::vector<double>(static_cast<std::size_t>(options_.replicates), not_a_number));
            return axis;
        }
        std::vector<std::pair<double, const ScoredSetting*>> order;
        for (const ScoredSetting& setting : given) {
            order.emplace_back(rows_.mean(cost_of(setting, which)), &setting);
        }
        std::stable_sort(order.begin(), order.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        const std::size_t settings = order.size();
        std::vector<double> costs, nll, columns(rows_.rows() * settings * 2);
        for (std::size_t s = 0; s < settings; ++s) {
            const ScoredSetting& setting = *order[s].second;
            const std::vector<double>& cost = cost_of(setting, which);
            costs.push_back(order[s].first);
            nll.push_back(rows_.mean(setting.nll));
            // Sum deviations from the mean, for costs relative to the mean, to limit rounding errors.
            const double unit = costs[s] > 0 ? costs[s] : 1;
            for (std::size_t i = 0; i < rows_.rows(); ++i) {
                const double tokens = rows_.weight(i);
                columns[(i * settings + s) * 2] = (cost[i] - costs[s] * tokens) / unit;
                columns[(i * settings + s) * 2 + 1] = setting.nll[i] - nll[s] * tokens;
            }
        }
        for (const double cost : wanted) {
            axis.values.push_back(reaches(costs, cost, rule.hull) ? nll_at(costs, nll, rule.hull, cost)
                                                                  : not_a_number);
            axis.replicates.emplace_back(static_cast<std::size_t>(options_.replicates), not_a_number);
        }
        for_each_replicate(rows_.sums(std::move(columns), settings * 2), resampling_, options_,
                           [&](std::int64_t r, std::span<const double> total, std::int64_t count) {
                               std::vector<double> drawn_costs, drawn_nll;
                               const auto n = static_cast<double>(count);
                               for (std::size_t s = 0; s < settings; ++s) {
                                   const double unit = costs[s] > 0 ? costs[s] : 1;
                                   drawn_costs.push_back(costs[s] + unit * total[2 * s] / n);
                                   drawn_nll.push_back(nll[s] + total[2 * s + 1] / n);
                               }
                               // Nearly equal costs may change their order in a replicate.
                               std::partial_sum(drawn_costs.begin(), drawn_costs.end(), drawn_costs.begin(),
                                                [](double a, double b) { return std::max(a, b); });
                               for (std::size_t c = 0; c < wanted.size(); ++c) {
                                   if (!std::isnan(axis.values[c])) {
                                       axis.replicates[c][static_cast<std::size_t>(r)] =
                                           nll_at(drawn_costs, drawn_nll, rule.hull, wanted[c]);
                                   }
                               }
                           });
        return axis;
    }

private:
    const RowLayout& rows_;
    const BootstrapOptions& options_;
    Resampling resampling_;
};

void sort_by_steps(std::vector<ScoredSetting>& settings, const RowLayout& rows) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t s = 0; s < settings.size(); ++s) {
        order.emplace_back(rows.mean(settings[s].steps), s);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<ScoredSetting> sorted;
    for (const auto& [cost, s] : order) {
        sorted.push_back(std::move(settings[s]));
    }
    settings = std::move(sorted);
}

/// The points that are corners of the lower convex hull.
std::vector<MatchedPoint> corners_of(const std::vector<MatchedPoint>& points) {
    std::vector<FrontPoint> places;
    for (const MatchedPoint& one : points) {
        places.push_back({one.steps, one.nll});
    }
    std::vector<MatchedPoint> corners;
    for (const FrontPoint& corner : convex_front(places)) {
        corners.push_back(*std::find_if(points.begin(), points.end(), [&](const MatchedPoint& one) {
            return one.steps == corner.cost && one.nll == corner.loss;
        }));
    }
    return corners;
}

/// NLL of every row minus NLL of a reference row, at every cost.
struct Differences {
    std::vector<std::vector<Estimate>> each;  ///< [rows][costs]
    std::vector<std::vector<Estimate>> bands; ///< simultaneous over causal rules and costs; else NaN
};

Differences differences_to(const std::vector<MatchedRow>& rows, const std::vector<Axis>& found,
                           std::size_t base, const SmallSample& small, const BootstrapOptions& options) {
    const Axis& reference = found[base];
    Differences differences;
    std::vector<std::pair<std::size_t, std::size_t>> places;
    std::vector<double> values;
    std::vector<std::vector<double>> replicates;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const std::size_t costs = found[row].values.size();
        differences.each.emplace_back(costs, unknown_estimate);
        differences.bands.emplace_back(costs, unknown_estimate);
        for (std::size_t c = 0; c < costs; ++c) {
            const double difference = found[row].values[c] - reference.values[c];
            if (std::isnan(difference)) {
                continue;
            }
            std::vector<double> apart = found[row].replicates[c];
            for (std::size_t r = 0; r < apart.size(); ++r) {
                apart[r] -= reference.replicates[c][r];
            }
            differences.each[row][c] = interval_of(difference, apart, small, options);
            if (rows[row].causal) {
                places.emplace_back(row, c);
                values.push_back(difference);
                replicates.push_back(std::move(apart));
            }
        }
    }
    const std::vector<Estimate> bands = simultaneous_bands(values, replicates, small, options);
    for (std::size_t i = 0; i < places.size(); ++i) {
        differences.bands[places[i].first][places[i].second] = bands[i];
    }
    return differences;
}

void fill_axis(std::vector<MatchedRow>& rows, std::vector<MatchedCell> MatchedRow::*axis,
               const std::vector<double>& costs, const std::vector<Axis>& found, std::size_t reference,
               const SmallSample& small, const BootstrapOptions& options) {
    const Differences to = differences_to(rows, found, reference, small, options);
    const auto blind = static_cast<std::size_t>(
        std::find_if(rows.begin(), rows.end(), [](const MatchedRow& row) { return row.name == blind_rule; }) -
        rows.begin());
    const Differences to_blind =
        blind == reference || blind == rows.size() ? to : differences_to(rows, found, blind, small, options);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        for (std::size_t c = 0; c < costs.size(); ++c) {
            MatchedCell cell;
            cell.cost = costs[c];
            cell.nll = interval_of(found[row].values[c], found[row].replicates[c], small, options);
            cell.difference = to.each[row][c];
            cell.band = to.bands[row][c];
            cell.better = blind < rows.size() && !rows[row].plain && to_blind.bands[row][c].high < 0;
            (rows[row].*axis).push_back(cell);
        }
    }
}

const PolicyKind* kind_with_threshold(const std::string& rule) {
    const PolicyKind* kind = find_policy_kind(rule == blind_rule ? "fixed" : rule);
    if (kind == nullptr || kind->parameters.empty()) {
        throw InputError(ErrorId::policy_unknown, "expected a rule with a threshold, found \"" + rule +
                                                      "\"; ponderscope policy --help-all lists the rules.");
    }
    return kind;
}

std::string name_of_price(double price, CostAxis axis) {
    return axis == CostAxis::steps ? "oracle:lambda=" + rounded(price)
                                   : "oracle at " + rounded(price * 1e9) + " nats a GFLOP";
}

} // namespace

MatchedComparison compare_matched(std::size_t rules, const AskRule& rule, std::size_t reference,
                                  const MatchedCosts& costs, const RowLayout& rows,
                                  const BootstrapOptions& options) {
    Matcher matcher(rows, options);
    MatchedRule base = rule(reference, {});
    sort_by_steps(base.settings, rows);
    matcher.settle(base);
    MatchedCosts wanted{costs.steps, {}};
    std::vector<double> ends, flops;
    for (const MatchedPoint& point : matcher.points(base.settings)) {
        ends.push_back(point.steps);
        flops.push_back(point.flops);
    }
    for (const double cost : costs.steps) {
        if (!reaches(ends, cost, false)) {
            throw InputError(ErrorId::policy_cost,
                             "expected mean steps that " + base.name + " reaches, from " +
                                 rounded(ends.front()) + " to " + rounded(ends.back()) + ", found " +
                                 rounded(cost) +
                                 (cost < ends.front() ? "; compare at more steps."
                                                      : "; record the run with --policy full, so that every "
                                                        "step is recorded, or compare at fewer steps."));
        }
        if (!std::isnan(flops.front())) {
            wanted.flops.push_back(at_cost(ends, flops, cost));
        }
    }
    for (const double cost : costs.flops) {
        if (!std::isnan(flops.front()) && reaches(flops, cost, false)) {
            wanted.flops.push_back(cost);
        }
    }
    std::sort(wanted.flops.begin(), wanted.flops.end());
    MatchedComparison result;
    result.reference = base.name;
    result.resampling = matcher.resampling();
    std::vector<Axis> by_steps, by_flops;
    for (std::size_t i = 0; i < rules; ++i) {
        throw_if_stopped(options.stop);
        MatchedRule one;
        if (i == reference && base.causal) {
            one = std::move(base); // NOLINT(bugprone-use-after-move): only one i is the reference
        } else {
            one = rule(i, wanted);
            sort_by_steps(one.settings, rows);
        }
        MatchedRow row;
        row.name = one.name;
        row.causal = one.causal;
        row.plain = one.plain;
        row.curve = matcher.points(one.settings);
        if (one.hull && one.causal) {
            row.curve = corners_of(row.curve);
        }
        for (const MatchedPoint& point : matcher.points(one.for_flops)) {
            row.curve.push_back(point);
        }
        by_steps.push_back(matcher.axis(one, CostAxis::steps, wanted.steps));
        by_flops.push_back(matcher.axis(one, CostAxis::flops, wanted.flops));
        result.rows.push_back(std::move(row));
    }
    const SmallSample small = SmallSample::of_units(result.resampling.units);
    fill_axis(result.rows, &MatchedRow::at_steps, wanted.steps, by_steps, reference, small, options);
    fill_axis(result.rows, &MatchedRow::at_flops, wanted.flops, by_flops, reference, small, options);
    return result;
}

std::vector<Estimate> against_blind(std::span<const ScoredSetting> settings,
                                    std::span<const ScoredSetting> depths, const RowLayout& rows,
                                    const BootstrapOptions& options) {
    std::vector<const ScoredSetting*> all;
    for (const std::span<const ScoredSetting> part : {depths, settings}) {
        for (const ScoredSetting& one : part) {
            all.push_back(&one);
        }
    }
    const bool flops =
        std::none_of(all.begin(), all.end(), [](const auto* one) { return one->flops.empty(); });
    const std::size_t width = 2 * all.size();
    std::vector<double> columns(rows.rows() * width);
    for (std::size_t s = 0; s < all.size(); ++s) {
        for (std::size_t i = 0; i < rows.rows(); ++i) {
            columns[i * width + 2 * s] = cost_of(*all[s], flops ? CostAxis::flops : CostAxis::steps)[i];
            columns[i * width + 2 * s + 1] = all[s]->nll[i];
        }
    }
    std::vector<Statistic> statistics;
    for (std::size_t s = depths.size(); s < all.size(); ++s) {
        statistics.emplace_back(
            [s, count = depths.size()](std::span<const double> total, std::int64_t tokens) {
                const auto n = static_cast<double>(tokens);
                std::vector<FrontPoint> points;
                for (std::size_t d = 0; d < count; ++d) {
                    points.push_back({total[2 * d] / n, total[2 * d + 1] / n});
                }
                const double cost = total[2 * s] / n;
                const std::vector<FrontPoint> hull = convex_front(points);
                return cost < hull.front().cost * (1 - 1e-9) ? not_a_number
                                                             : total[2 * s + 1] / n - loss_at(hull, cost);
            });
    }
    return bootstrap(rows.sums(std::move(columns), width), statistics, options);
}

std::vector<std::string> matched_rules(const ReplayTable& table) {
    std::vector<std::string> names{blind_rule};
    for (const PolicyKind& kind : policy_kinds()) {
        if (!kind.causal ||
            (table.can(kind) && !kind.parameters.empty() && kind.first_step < table.columns.max_steps())) {
            names.push_back(kind.name);
        }
    }
    return names;
}

std::vector<double> even_costs(double reached, int parts) {
    std::vector<double> costs;
    for (int i = 1; i < parts; ++i) {
        costs.push_back(reached * i / parts);
    }
    return costs;
}

MatchedRule replayed_rule(const ReplayTable& table, const ScoredRows& scored, const std::string& name,
                          int settings, const MatchedCosts& costs) {
    ReplayResult result;
    const auto add = [&](std::vector<ScoredSetting>& to, const std::string& setting) {
        to.push_back(scored.of(setting, result));
        if (std::ranges::any_of(to.back().nll, [](double nll) { return std::isnan(nll); })) {
            throw InputError(
                ErrorId::trace_damaged,
                table.run + ": expected an NLL at every step of every token with a target, found steps of " +
                    name + " without an NLL; the trace is damaged, record it again.");
        }
    };
    const PolicyKind& kind = *kind_with_threshold(name);
    MatchedRule rule{name, kind.causal, name == blind_rule || !kind.causal, {}, {}};
    if (kind.causal) {
        std::vector<PolicySpec> specs;
        for (const double value : threshold_values(kind, table, settings)) {
            specs.push_back(policy_at(kind, value));
        }
        if (specs.empty()) {
            specs.push_back(PolicySpec::parse("full")); // all tokens stopped before the rule decides
        }
        for (const PolicySpec& spec : specs) {
            replay(table, spec, result);
            add(rule.settings, spec.text());
        }
        return rule;
    }
    const auto on_axis = [&](CostAxis axis, const std::vector<double>& at,
                             std::vector<ScoredSetting>& found) {
        const Oracle oracle(table, axis);
        for (const double price : oracle_prices(oracle.turns(), settings, at)) {
            oracle.replay(price, result);
            add(found, name_of_price(price, axis));
        }
    };
    on_axis(CostAxis::steps, costs.steps, rule.settings);
    if (table.flops) {
        on_axis(CostAxis::flops, costs.flops, rule.for_flops);
    }
    return rule;
}

std::vector<std::string> settings_around(const MatchedRow& row, const std::vector<double>& costs) {
    std::vector<std::size_t> chosen;
    for (const double cost : costs) {
        auto right = std::find_if(row.curve.begin(), row.curve.end(),
                                  [&](const MatchedPoint& point) { return point.steps >= cost; });
        if (right == row.curve.end() && row.name == blind_rule) {
            --right;
        }
        if (right == row.curve.end() || row.curve.front().steps > cost) {
            continue;
        }
        const auto at = static_cast<std::size_t>(right - row.curve.begin());
        chosen.push_back(at);
        if (at > 0) {
            chosen.push_back(at - 1);
        }
    }
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    std::vector<std::string> settings;
    for (const std::size_t at : chosen) {
        settings.push_back(row.curve[at].policy);
    }
    return settings;
}

} // namespace ponderscope
