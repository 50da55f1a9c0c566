// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/policy_rows.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/base/words.h"
#include "core/policy/matched.h"
#include "core/policy/rerun_difference.h"
#include "core/policy/scored_rows.h"
#include "core/stats/front.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>
#include <string_view>
#include <utility>

namespace ponderscope {
namespace {

/// Sets the difference of each of \p outcomes to \p full. All differences are over the same tokens.
void set_against(const ReplayTable& table, const std::vector<float>& full,
                 const std::vector<std::vector<float>>& nll, const std::vector<PolicyOutcome*>& outcomes,
                 const BootstrapOptions& options) {
    std::vector<std::span<const float>> columns{full};
    columns.insert(columns.end(), nll.begin(), nll.end());
    const ScoredRows scored(table, columns);
    if (scored.tokens().empty() || nll.empty()) {
        return;
    }
    std::vector<std::vector<double>> values;
    for (const std::vector<float>& one : nll) {
        values.push_back(scored.of(one));
    }
    const PairedDifferences found = paired_differences(scored.of(full), values, scored.layout(), options);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        outcomes[i]->difference = found.each[i];
    }
}

} // namespace

DataTable table_of(std::span<const PolicyRow> rows) {
    using enum CellFormat;
    DataTable table{{},
                    {{"policy", "Policy", text},
                     {"threshold", "Threshold", significant, 4},
                     {"mean_steps", "Steps\nreplay", number, 2},
                     {"mean_steps_rerun", "Steps\nrerun", number, 2},
                     {"difference", "Δ NLL\nreplay", difference, 3},
                     {"difference_rerun", "Δ NLL\nrerun", difference, 3},
                     {"against_blind", "Δ NLL blind\nreplay", difference, 3},
                     {"thinks_better", "Thinks better\nreplay", text},
                     {"flops_saved", "FLOPs saved\nreplay", share, 1},
                     {"flops_saved_rerun", "FLOPs saved\nrerun", share, 1},
                     {"rule", "Rule", text}},
                    {}};
    for (const PolicyRow& row : rows) {
        const PolicyKind& kind = *PolicySpec::parse(row.spec).kind;
        const auto of_rerun = [&](auto PolicyOutcome::*value) {
            return row.rerun ? Cell((*row.rerun).*value) : Cell();
        };
        table.rows.push_back({title_of(kind) + (row.causal ? "" : " (a bound)"), row.threshold,
                              row.replayed.steps, of_rerun(&PolicyOutcome::steps), row.replayed.difference,
                              of_rerun(&PolicyOutcome::difference), row.replayed.against_blind,
                              row.replayed.thinks_better(), row.replayed.saved,
                              of_rerun(&PolicyOutcome::saved), rule_in_words(kind, row.threshold)});
    }
    return table;
}

std::string title_of(const PolicyKind& kind) {
    if (kind.is_signal_rule()) {
        return kind.name;
    }
    std::string title = kind.name;
    std::ranges::replace(title, '_', ' ');
    for (const auto& [from, to] : {std::pair{"calm", "CALM"}, {"kl", "KL"}}) {
        if (title == from || title.starts_with(std::string(from) + " ")) {
            title.replace(0, std::string_view(from).size(), to);
        }
    }
    return title;
}

std::string title_of(const std::string& rule) {
    const PolicyKind* kind = find_policy_kind(rule);
    return kind != nullptr ? title_of(*kind) : rule;
}

std::string rule_in_words(const PolicyKind& kind, double threshold) {
    std::string rule = kind.rule;
    if (!kind.parameters.empty() && std::isfinite(threshold)) {
        const std::regex key("\\b" + kind.parameters.front().key + "\\b");
        rule = std::regex_replace(rule, key, rounded(threshold, 4));
    }
    for (const char* sentence : {"at random", "every token", "nothing halts", "the step"}) {
        if (rule.starts_with(sentence)) {
            rule.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(rule.front())));
            return rule + ".";
        }
    }
    return "A token stops when " + rule + ".";
}

std::vector<PolicyRow> policy_rows(const ReplayTable& table, const StoredRun& of,
                                   const std::vector<std::string>& specs,
                                   const std::vector<PolicyRerun>& reruns, const BootstrapOptions& options) {
    const auto rerun_of = [&](const std::string& policy) {
        return std::find_if(reruns.begin(), reruns.end(),
                            [&](const PolicyRerun& one) { return one.policy == policy; });
    };
    const TraceReader reader = TraceReader::open(of.trace);
    const auto compared = [&](const ReplayResult& replayed, const PolicyRerun& again,
                              std::string& fault) -> std::optional<RerunDifference> {
        try {
            return rerun_difference(table, replayed, reader, of.run, TraceReader::open(again.stored.trace),
                                    again.stored.run, options.stop);
        } catch (const InputError& error) {
            fault = error.what();
            return std::nullopt;
        }
    };
    const ReplayResult full = replay(table, PolicySpec::parse("full"));
    // Reruns are compared with `full` as the model ran it. If exits choose the read-out (KvPolicy::full), the
    // table has every step, but the run itself is not `full`.
    const bool ran_full = !table.halted && of.run.steps_sum >= static_cast<double>(of.run.max_steps) *
                                                                   static_cast<double>(of.run.scored_tokens);
    std::vector<float> exact_full = ran_full ? table.nll : std::vector<float>();
    double exact_flops = table.halted ? not_a_number : full.mean_flops;
    if (const auto again = rerun_of("full"); again != reruns.end()) {
        std::string fault; // ignored; a row of `full` reports it
        if (std::optional<RerunDifference> known = compared(full, *again, fault)) {
            exact_full = std::move(known->nll);
            exact_flops = known->mean_flops;
        }
    }
    std::vector<PolicyRow> rows;
    std::vector<ReplayResult> replays;
    std::vector<std::vector<float>> replayed_nll, exact_nll;
    for (const std::string& text : specs) {
        throw_if_stopped(options.stop);
        const PolicySpec spec = PolicySpec::parse(text);
        table.require(spec);
        PolicyRow row;
        row.spec = text;
        row.causal = spec.kind->causal;
        if (!spec.kind->parameters.empty() && spec.has(spec.kind->parameters.front().key)) {
            row.threshold = spec.number(spec.kind->parameters.front().key);
        } else if (spec.kind->name == "learned") {
            row.threshold = table.context.own_threshold;
        }
        ReplayResult replayed = replay(table, spec);
        row.replayed = {replayed.mean_steps, replayed.mean_nll, replayed.mean_flops,
                        1 - replayed.mean_flops / full.mean_flops, unknown_estimate};
        if (const auto again = rerun_of(text); again != reruns.end()) {
            if (std::optional<RerunDifference> exact = compared(replayed, *again, row.fault)) {
                row.rerun = {
                    exact->mean_steps, exact->mean_nll, table.flops ? exact->mean_flops : not_a_number,
                    table.flops ? 1 - exact->mean_flops / exact_flops : not_a_number, unknown_estimate};
                exact_nll.push_back(std::move(exact->nll));
            }
        }
        replayed_nll.push_back(replayed.nll);
        replays.push_back(std::move(replayed));
        rows.push_back(std::move(row));
    }
    throw_if_stopped(options.stop);
    std::vector<PolicyOutcome*> by_replay, by_rerun;
    for (PolicyRow& row : rows) {
        by_replay.push_back(&row.replayed);
        if (row.rerun) {
            by_rerun.push_back(&*row.rerun);
        }
    }
    const std::size_t count = replays.size();
    for (std::int64_t n = 0; n <= table.columns.max_steps(); ++n) {
        replays.push_back(replay(table, PolicySpec::parse("fixed:n=" + std::to_string(n))));
    }
    std::vector<std::span<const float>> columns;
    for (const ReplayResult& one : replays) {
        columns.emplace_back(one.nll);
    }
    const ScoredRows scored(table, columns);
    const BootstrapOptions settled = with_block_of_run(table, scored, options);
    set_against(table, full.nll, replayed_nll, by_replay, settled);
    if (!exact_full.empty()) {
        set_against(table, exact_full, exact_nll, by_rerun, settled);
    }
    if (scored.tokens().empty() || rows.empty()) {
        return rows;
    }
    std::vector<ScoredSetting> settings;
    for (const ReplayResult& one : replays) {
        settings.push_back(scored.of("", one));
    }
    const std::span<const ScoredSetting> all(settings);
    const std::vector<Estimate> apart =
        against_blind(all.first(count), all.subspan(count), scored.layout(), settled);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].replayed.against_blind = rows[i].causal ? apart[i] : unknown_estimate;
    }
    return rows;
}

std::size_t starting_place(const PolicyKind& kind, const ReplayTable& table,
                           const std::vector<double>& values) {
    if (!kind.causal) {
        return 0; // the bound at price 0
    }
    if (kind.name != "learned" || !std::isfinite(table.context.own_threshold) || values.empty()) {
        return values.size() / 2;
    }
    const auto own = std::lower_bound(values.begin(), values.end(), table.context.own_threshold);
    return std::min(static_cast<std::size_t>(own - values.begin()), values.size() - 1);
}

std::vector<std::string> starting_policies(const ReplayTable& table) {
    std::vector<std::string> specs;
    for (const PolicyKind& kind : policy_kinds()) {
        if (table.can(kind)) {
            const std::vector<double> values = threshold_values(kind, table, slider_places);
            specs.push_back(
                policy_at(kind, values.empty() ? 0 : values[starting_place(kind, table, values)]).text());
        }
    }
    return specs;
}

} // namespace ponderscope
