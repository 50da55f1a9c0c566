// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/matched.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/policy/thresholds.h"
#include "core/stats/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ponderscope {
namespace {

/// The value at \p cost of the line through points with ascending costs; its ends go on flat. Of equal costs
/// the last.
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

bool reaches(std::span<const double> costs, double cost) {
    const double slack = 1e-9 * std::abs(cost) + 1e-12;
    return !costs.empty() && costs.front() <= cost + slack && costs.back() >= cost - slack;
}

/// A rule's curve on the sample, and on every replicate at the wanted costs.
struct Curve {
    std::vector<double> steps, flops, nll;
    struct Axis {
        std::vector<double> values;                  ///< a cost
        std::vector<std::vector<double>> replicates; ///< [costs][replicates]
    };
    Axis by_steps, by_flops;
};

class Matcher {
public:
    Matcher(const RowLayout& rows, const BootstrapOptions& options) : rows_(rows), options_(options) {}

    /// Settles how it is resampled by the rule's dearest setting.
    void settle(const MatchedRule& rule) {
        const std::span<const double> series[] = {rule.settings.back().nll};
        resampling_ = rows_.resampling(series, options_);
    }
    [[nodiscard]] const Resampling& resampling() const { return resampling_; }

    [[nodiscard]] Curve means(const MatchedRule& rule) const {
        Curve curve;
        for (const ScoredSetting& setting : rule.settings) {
            curve.steps.push_back(rows_.mean(setting.steps));
            curve.nll.push_back(rows_.mean(setting.nll));
            curve.flops.push_back(setting.flops.empty() ? not_a_number : rows_.mean(setting.flops));
        }
        return curve;
    }

    [[nodiscard]] Curve curve(const MatchedRule& rule, const std::vector<double>& steps,
                              const std::vector<double>& flops) const {
        Curve curve = means(rule);
        const std::size_t settings = rule.settings.size();
        const bool costs = !flops.empty();
        const std::size_t each = costs ? 3 : 2;
        std::vector<double> columns(rows_.rows() * settings * each);
        for (std::size_t s = 0; s < settings; ++s) {
            for (std::size_t i = 0; i < rows_.rows(); ++i) {
                double* to = columns.data() + (i * settings + s) * each;
                const double tokens = rows_.weight(i);
                to[0] = rule.settings[s].steps[i] - curve.steps[s] * tokens;
                to[1] = rule.settings[s].nll[i] - curve.nll[s] * tokens;
                if (costs) {
                    to[2] = rule.settings[s].flops[i] / curve.flops[s] - tokens;
                }
            }
        }
        const auto prepare = [&](Curve::Axis& axis, const std::vector<double>& wanted,
                                 const std::vector<double>& along) {
            for (const double cost : wanted) {
                axis.values.push_back(reaches(along, cost) ? at_cost(along, curve.nll, cost) : not_a_number);
                axis.replicates.emplace_back(static_cast<std::size_t>(options_.replicates), not_a_number);
            }
        };
        prepare(curve.by_steps, steps, curve.steps);
        prepare(curve.by_flops, flops, curve.flops);
        for_each_replicate(rows_.sums(std::move(columns), settings * each), resampling_, options_,
                           [&](std::int64_t r, std::span<const double> total, std::int64_t count) {
                               std::vector<double> by[3];
                               const auto n = static_cast<double>(count);
                               for (std::size_t s = 0; s < settings; ++s) {
                                   by[0].push_back(curve.steps[s] + total[s * each] / n);
                                   by[1].push_back(curve.nll[s] + total[s * each + 1] / n);
                                   if (costs) {
                                       by[2].push_back(curve.flops[s] * (1 + total[s * each + 2] / n));
                                   }
                               }
                               const auto fill = [&](Curve::Axis& axis, const std::vector<double>& wanted,
                                                     std::vector<double>& along) {
                                   // FLOPs of neighbours may change places by a hair in a replicate.
                                   std::partial_sum(along.begin(), along.end(), along.begin(),
                                                    [](double a, double b) { return std::max(a, b); });
                                   for (std::size_t c = 0; c < wanted.size(); ++c) {
                                       if (!std::isnan(axis.values[c])) {
                                           axis.replicates[c][static_cast<std::size_t>(r)] =
                                               at_cost(along, by[1], wanted[c]);
                                       }
                                   }
                               };
                               fill(curve.by_steps, steps, by[0]);
                               fill(curve.by_flops, flops, by[2]);
                           });
        return curve;
    }

private:
    const RowLayout& rows_;
    const BootstrapOptions& options_;
    Resampling resampling_;
};

void sort_by_cost(MatchedRule& rule, const RowLayout& rows) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t s = 0; s < rule.settings.size(); ++s) {
        order.emplace_back(rows.mean(rule.settings[s].steps), s);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<ScoredSetting> sorted;
    for (const auto& [cost, s] : order) {
        sorted.push_back(std::move(rule.settings[s]));
    }
    rule.settings = std::move(sorted);
}

/// Differences to the reference at every cost, with intervals and, for causal rules, bands over all of them.
void fill_axis(std::vector<MatchedRow>& rows, std::vector<MatchedCell> MatchedRow::*axis,
               const std::vector<double>& costs, const std::vector<Curve::Axis>& found,
               const Curve::Axis& reference, const SmallSample& small, const BootstrapOptions& options) {
    struct Place {
        std::size_t row, cost;
    };
    std::vector<Place> places;
    std::vector<double> values;
    std::vector<std::vector<double>> replicates;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        for (std::size_t c = 0; c < costs.size(); ++c) {
            MatchedCell cell;
            cell.cost = costs[c];
            const double value = found[row].values[c];
            const std::vector<double>& mine = found[row].replicates[c];
            cell.nll = interval_of(value, mine, small, options);
            std::vector<double> apart(mine.size());
            for (std::size_t r = 0; r < mine.size(); ++r) {
                apart[r] = mine[r] - reference.replicates[c][r];
            }
            const double difference = value - reference.values[c];
            cell.difference = interval_of(difference, apart, small, options);
            cell.band = {not_a_number, not_a_number, not_a_number, not_a_number};
            if (rows[row].causal && !std::isnan(difference)) {
                places.push_back({row, c});
                values.push_back(difference);
                replicates.push_back(std::move(apart));
            }
            (rows[row].*axis).push_back(cell);
        }
    }
    const std::vector<Estimate> bands = simultaneous_bands(values, replicates, small, options);
    for (std::size_t i = 0; i < places.size(); ++i) {
        (rows[places[i].row].*axis)[places[i].cost].band = bands[i];
    }
}

} // namespace

MatchedComparison compare_matched(std::size_t rules, const std::function<MatchedRule(std::size_t)>& rule,
                                  std::size_t reference, const std::vector<double>& costs,
                                  const RowLayout& rows, const BootstrapOptions& options) {
    if (options.kind == IntervalKind::bca) {
        throw InputError(
            "rules at equal cost have expanded or percentile intervals, not bca; choose one of these.");
    }
    Matcher matcher(rows, options);
    MatchedRule base = rule(reference);
    sort_by_cost(base, rows);
    matcher.settle(base);
    const Curve ends = matcher.means(base);
    std::vector<double> flops;
    for (const double cost : costs) {
        if (!reaches(ends.steps, cost)) {
            throw InputError(
                "expected mean steps that " + base.name + " reaches, from " +
                std::to_string(ends.steps.front()) + " to " + std::to_string(ends.steps.back()) + ", found " +
                std::to_string(cost) +
                (cost < ends.steps.front()
                     ? "; compare at more steps."
                     : "; record the run with --policy full, so that every step is there, or compare at "
                       "fewer steps."));
        }
        if (!std::isnan(ends.flops.front())) {
            flops.push_back(at_cost(ends.steps, ends.flops, cost));
        }
    }
    MatchedComparison result;
    result.reference = base.name;
    result.resampling = matcher.resampling();
    const Curve against = matcher.curve(base, costs, flops);
    std::vector<Curve::Axis> by_steps, by_flops;
    for (std::size_t i = 0; i < rules; ++i) {
        if (options.stop.stop_requested()) {
            throw Cancelled();
        }
        MatchedRule one;
        if (i == reference) {
            one = std::move(base); // NOLINT(bugprone-use-after-move): one i is the reference
        } else {
            one = rule(i);
            sort_by_cost(one, rows);
        }
        Curve curve = i == reference ? against : matcher.curve(one, costs, flops);
        MatchedRow row{one.name, one.causal, {}, {}, {}};
        for (std::size_t s = 0; s < one.settings.size(); ++s) {
            row.curve.push_back({one.settings[s].policy, curve.steps[s], curve.flops[s], curve.nll[s]});
        }
        result.rows.push_back(std::move(row));
        by_steps.push_back(std::move(curve.by_steps));
        by_flops.push_back(std::move(curve.by_flops));
    }
    const SmallSample small = SmallSample::of_units(result.resampling.units);
    fill_axis(result.rows, &MatchedRow::at_steps, costs, by_steps, against.by_steps, small, options);
    fill_axis(result.rows, &MatchedRow::at_flops, flops, by_flops, against.by_flops, small, options);
    return result;
}

std::vector<std::string> matched_rules(const ReplayTable& table) {
    std::vector<std::string> names;
    for (const PolicyKind& kind : policy_kinds()) {
        if (kind.name == "oracle" ||
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

std::vector<double> even_costs(const ReplayTable& table, const ScoredRows& rows, int parts) {
    const RowLayout layout = rows.layout;
    return even_costs(rows.rows.empty() ? 0 : layout.mean(rows.of(table.ran)), parts);
}

namespace {

/// What is tried of a rule. \p thresholds(kind): of those that have one.
std::vector<ReplayScan::Setting>
settings_of(const std::string& name, std::int64_t last,
            const std::function<std::vector<double>(const PolicyKind&)>& thresholds) {
    std::vector<ReplayScan::Setting> settings;
    if (name == "oracle") {
        for (std::int64_t n = 0; n <= last; ++n) {
            settings.push_back({"oracle of the first " + std::to_string(n + 1) + " read-outs",
                                [n, name](const ReplayTable& table, ReplayResult& result) {
                                    std::vector<std::int32_t> ran = table.ran;
                                    for (std::int32_t& steps : ran) {
                                        steps = std::min(steps, static_cast<std::int32_t>(n));
                                    }
                                    result.steps.resize(table.tokens());
                                    make_policy(PolicySpec::parse(name), table.context)
                                        ->choose(table.columns, 0, table.places, ran, result.steps);
                                    read_replay(table, false, result);
                                }});
        }
        return settings;
    }
    const auto kinds = policy_kinds();
    const auto kind =
        std::find_if(kinds.begin(), kinds.end(), [&](const PolicyKind& one) { return one.name == name; });
    if (kind == kinds.end() || kind->parameters.empty()) {
        throw InputError("expected a rule with a threshold, found \"" + name + "\".");
    }
    std::vector<PolicySpec> specs;
    for (const double value : thresholds(*kind)) {
        specs.push_back(policy_at(*kind, value));
    }
    if (specs.empty()) {
        specs.push_back(PolicySpec::parse("full")); // tokens that all stopped before the rule could
    }
    for (const PolicySpec& spec : specs) {
        settings.push_back({spec.text(), [spec](const ReplayTable& table, ReplayResult& result) {
                                replay(table, spec, result);
                            }});
    }
    return settings;
}

} // namespace

MatchedRule replayed_rule(const ReplayTable& table, const ScoredRows& rows, const std::string& name,
                          int settings) {
    MatchedRule rule{name, name != "oracle", {}};
    ReplayResult result;
    for (const ReplayScan::Setting& setting :
         settings_of(name, table.columns.max_steps(),
                     [&](const PolicyKind& kind) { return threshold_values(kind, table, settings); })) {
        setting.replay(table, result);
        rule.settings.push_back({setting.policy, rows.of(result.steps), rows.of(result.nll),
                                 result.flops.empty() ? std::vector<double>() : rows.of(result.flops)});
    }
    return rule;
}

MatchedRule replayed_rule(const ReplayScan& scan, const RowLayout& rows, const std::string& name,
                          int settings) {
    const std::string& run = scan.reader().none().run;
    ClusterReplays found =
        scan.replays(settings_of(name, scan.reader().run().max_steps, [&](const PolicyKind& kind) {
            return threshold_values(kind, scan, settings);
        }));
    if (found.rows.layout().stretches != rows.layout().stretches) {
        throw InputError(run +
                         ": expected an NLL at every step of every token with a target, found steps of " +
                         name + " without; the trace is damaged, record it again.");
    }
    return {name, name != "oracle", std::move(found.settings)};
}

std::vector<std::string> settings_around(const MatchedRow& row, const std::vector<double>& costs) {
    std::vector<std::size_t> chosen;
    for (const double cost : costs) {
        const auto right = std::find_if(row.curve.begin(), row.curve.end(),
                                        [&](const MatchedPoint& point) { return point.steps >= cost; });
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
