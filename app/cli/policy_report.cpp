// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/policy_report.h"

#include "app/cli/console.h"
#include "app/cli/report.h"
#include "core/base/utf8.h"
#include "core/base/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>

namespace ponderscope::cli {
namespace {

using cli::json_of; // of estimates, beside those of this file

nlohmann::json json_of(const PolicyOutcome& outcome) {
    return {{"mean_steps", number_or_null(outcome.mean_steps)},
            {"mean_nll", number_or_null(outcome.mean_nll)},
            {"perplexity", number_or_null(outcome.perplexity)},
            {"flops_per_token", number_or_null(outcome.mean_flops)},
            {"difference_to_full", json_of(outcome.difference)},
            {"band", json_of(outcome.band)},
            {"p", number_or_null(outcome.p)},
            {"on_front", outcome.on_front}};
}

void print_row(const std::string& name, std::size_t width, const PolicyOutcome& outcome) {
    std::cout << padded(name, width) << right(fixed(outcome.mean_steps, 3), 8)
              << right(fixed(outcome.mean_nll, 4), 9) << right(fixed(outcome.perplexity, 2), 10)
              << right(std::isnan(outcome.mean_flops) ? "-" : fixed(outcome.mean_flops / 1e9, 6), 12) << "   "
              << interval(outcome.difference) << "   [" << fixed(outcome.band.low, 4) << ", "
              << fixed(outcome.band.high, 4) << "]" << (outcome.on_front ? "  front" : "") << "\n";
}

void print_difference(const PolicyPoint::Exact& exact) {
    const RerunDifference& difference = exact.difference;
    const Agreement& agreement = exact.agreement;
    std::cout << "    agreement: " << interval(agreement.equal_steps)
              << " of the tokens stop at the same step;"
              << " steps, rerun - replay:";
    for (const auto& [steps, tokens] : agreement.step_differences) {
        std::cout << " " << (steps > 0 ? "+" : "") << steps << ": " << with_separators(tokens);
    }
    std::cout << "\n    rerun - replay: NLL " << interval(agreement.nll) << ", middle 90 % of the tokens "
              << fixed(agreement.nll_quantiles[1].second, 4) << " to "
              << fixed(agreement.nll_quantiles[5].second, 4) << "; largest of a token "
              << fixed(difference.largest, 4) << " at token " << difference.largest_row << " of sequence "
              << difference.largest_sequence << "; " << with_separators(difference.steps_changed) << " of "
              << with_separators(difference.tokens) << " tokens stopped elsewhere; run " << exact.run << "\n";
}

std::string csv_row(const PolicySpec& spec, const char* kind, const PolicyOutcome& outcome) {
    const std::vector<PolicyParameter>& parameters = spec.kind->parameters;
    const bool has = !parameters.empty() && spec.has(parameters.front().key);
    std::string text = "\"" + spec.text() + "\"," + spec.kind->name + "," +
                       (has ? exact_digits(spec.number(parameters.front().key)) : "") + "," + kind;
    for (const double value : {outcome.mean_steps, outcome.mean_nll, outcome.perplexity, outcome.mean_flops,
                               outcome.difference.value, outcome.difference.low, outcome.difference.high}) {
        text += "," + exact_digits(value);
    }
    return text + (outcome.on_front ? ",1" : ",0");
}

} // namespace

std::string exact_digits(double value) {
    return std::isfinite(value) ? shortest(value) : std::string();
}

void PolicyReport::print(const IntervalOptions& intervals) const {
    const bool reran =
        std::any_of(points.begin(), points.end(), [](const PolicyPoint& point) { return point.exact; });
    std::size_t width = 7;
    const auto name_of = [](const PolicyPoint& point) {
        return point.spec.text() + (point.spec.kind->causal ? "" : " (bound)");
    };
    for (const PolicyPoint& point : points) {
        width = std::max(width, name_of(point).size() + 1);
    }
    std::cout << visible(run) << "  replay from recorded signals" << (reran ? ", and exact reruns" : "")
              << ", " << with_separators(scored) << " scored tokens, "
              << (layers_as_steps ? "exits after blocks" : "steps") << " 0 to " << max_steps << "\n";
    std::cout << padded("policy", width) << right(layers_as_steps ? "exit" : "steps", 8) << right("NLL", 9)
              << right("ppl", 10) << right("GFLOP", 12)
              << "   NLL - full [interval]   [band over all rows]\n";
    for (const PolicyPoint& point : points) {
        print_row(name_of(point), width, point.replayed);
        if (point.exact) {
            print_row("  rerun", width, point.exact->outcome);
            print_difference(*point.exact);
        }
    }
    for (const FrontGap& gap : gaps) {
        const std::string kind = gap.exact ? " (reruns)" : reran ? " (replays)" : "";
        if (std::isnan(gap.fronts.gap.value)) {
            std::cout << "fronts of " << gap.b << " and " << gap.a << kind << " reach no common cost\n";
            continue;
        }
        std::cout << "NLL of the front of " << gap.b << " minus that of " << gap.a << kind << " at equal "
                  << (knows_flops ? "FLOPs" : "steps") << ": " << interval(gap.fronts.gap)
                  << " nats a token\n";
    }
    for (const ChosenSetting& one : chosen) {
        const std::string kind = one.exact ? " (rerun)" : reran ? " (replay)" : "";
        if (!one.point) {
            std::cout << one.policy << kind << ": no setting loses at most " << within
                      << " nats to full where it was chosen\n";
            continue;
        }
        const PolicyPoint& point = points[*one.point];
        const PolicyOutcome& outcome = one.exact ? point.exact->outcome : point.replayed;
        std::cout << "chosen of " << one.policy << kind << ": " << point.spec.text() << ", "
                  << fixed(outcome.mean_steps, 3) << " steps, NLL - full " << interval(outcome.difference)
                  << "; loses less than " << within << " nats: p " << fixed(one.equivalence.p_below, 4)
                  << "\n";
    }
    if (!split.empty()) {
        std::cout << "split: " << split
                  << "; all rows are of the reported half, fronts of the choosing one\n";
    }
    std::cout << intervals.sentence(resampling) << "\n";
    for (const std::string& notice : notices) {
        std::cout << "note: " << visible(notice) << "\n";
    }
}

nlohmann::json PolicyReport::to_json(const IntervalOptions& intervals) const {
    nlohmann::json rows = nlohmann::json::array();
    for (const PolicyPoint& point : points) {
        nlohmann::json row = json_of(point.replayed);
        row["policy"] = point.spec.text();
        row["kind"] = "replay";
        row["causal"] = point.spec.kind->causal;
        row[split.empty() ? "steps_histogram" : "steps_histogram_of_both_halves"] = point.histogram;
        if (point.exact) {
            const RerunDifference& difference = point.exact->difference;
            row["rerun"] = json_of(point.exact->outcome);
            row["rerun"]["run"] = point.exact->run;
            const Agreement& agreement = point.exact->agreement;
            nlohmann::json steps = nlohmann::json::array();
            for (const auto& [change, tokens] : agreement.step_differences) {
                steps.push_back({{"rerun_minus_replay", change}, {"tokens", tokens}});
            }
            nlohmann::json quantiles = nlohmann::json::array();
            for (const auto& [q, nats] : agreement.nll_quantiles) {
                quantiles.push_back({{"q", q}, {"nats", number_or_null(nats)}});
            }
            row["rerun"]["agreement"] = {{"equal_steps", json_of(agreement.equal_steps)},
                                         {"mean_steps_difference", json_of(agreement.steps)},
                                         {"steps", steps},
                                         {"nll_quantiles", quantiles}};
            row["rerun"]["minus_replay"] = {{"tokens", difference.tokens},
                                            {"mean_nll", json_of(agreement.nll)},
                                            {"largest", number_or_null(difference.largest)},
                                            {"largest_sequence", difference.largest_sequence},
                                            {"largest_token", difference.largest_row},
                                            {"tokens_with_other_steps", difference.steps_changed}};
        }
        rows.push_back(std::move(row));
    }
    nlohmann::json areas = nlohmann::json::array();
    for (const FrontGap& gap : gaps) {
        areas.push_back({{"a", gap.a},
                         {"b", gap.b},
                         {"kind", gap.exact ? "rerun" : "replay"},
                         {"cost", knows_flops ? "flops" : "steps"},
                         {"from", number_or_null(gap.fronts.low)},
                         {"to", number_or_null(gap.fronts.high)},
                         {"nll_b_minus_a", json_of(gap.fronts.gap)}});
    }
    nlohmann::json report{{"run", run},
                          {"scored_tokens", scored},
                          {"max_steps", max_steps},
                          {"layers_as_steps", layers_as_steps},
                          {"halted", halted},
                          {"points", rows},
                          {"fronts", areas},
                          {"notices", notices}};
    if (!split.empty()) {
        nlohmann::json choices = nlohmann::json::array();
        for (const ChosenSetting& one : chosen) {
            nlohmann::json row{{"policy", one.policy}, {"kind", one.exact ? "rerun" : "replay"}};
            row["chosen"] =
                one.point ? nlohmann::json(points[*one.point].spec.text()) : nlohmann::json(nullptr);
            row["loses_less_p"] =
                one.point ? number_or_null(one.equivalence.p_below) : nlohmann::json(nullptr);
            choices.push_back(std::move(row));
        }
        report["split"] = {{"halves", split}, {"within", within}, {"chosen", choices}};
    }
    intervals.write_to(report, resampling);
    return report;
}

std::string PolicyReport::to_csv() const {
    std::string text = "policy,name,threshold,kind,mean_steps,mean_nll,perplexity,flops_per_token,difference,"
                       "difference_low,difference_high,on_front,minus_replay,minus_replay_low,"
                       "minus_replay_high,largest_of_a_token,tokens_with_other_steps,run\n";
    for (const PolicyPoint& point : points) {
        text += csv_row(point.spec, "replay", point.replayed) + ",,,,,,\n";
        if (point.exact) {
            const Estimate& minus = point.exact->agreement.nll;
            text += csv_row(point.spec, "rerun", point.exact->outcome) + "," + exact_digits(minus.value) +
                    "," + exact_digits(minus.low) + "," + exact_digits(minus.high) + "," +
                    exact_digits(point.exact->difference.largest) + "," +
                    std::to_string(point.exact->difference.steps_changed) + ",\"" + point.exact->run + "\"\n";
        }
    }
    return text;
}

} // namespace ponderscope::cli
