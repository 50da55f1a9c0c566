// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/replay_scan.h"

#include "core/base/error.h"
#include "core/policy/scored_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace ponderscope {
namespace {

/// What the tokens of some sequences add up to.
struct Sums {
    std::vector<double> nll, flops;                   ///< a replay each, of all tokens that it scored
    std::vector<std::int64_t> scored;                 ///< likewise
    std::vector<std::vector<std::int64_t>> histogram; ///< likewise
    std::int64_t tokens = 0;
    bool halted = false;
    struct Piece {
        std::int64_t cluster, tokens; ///< that every replay scored
        std::vector<double> values;   ///< [replays, 3]: steps, NLL, FLOPs
    };
    std::vector<Piece> pieces;
};

Sums sums_of(const ReplayTable& table, const std::vector<ReplayResult>& results) {
    constexpr std::size_t width = 3;
    Sums sums;
    sums.tokens = static_cast<std::int64_t>(table.tokens());
    std::vector<std::uint8_t> scored(table.tokens(), 1);
    for (const ReplayResult& result : results) {
        double nll = 0;
        for (std::size_t i = 0; i < table.tokens(); ++i) {
            const bool target = !std::isnan(result.nll[i]);
            scored[i] &= static_cast<std::uint8_t>(target);
            nll += target ? static_cast<double>(result.nll[i]) : 0;
        }
        sums.nll.push_back(nll);
        sums.flops.push_back(
            std::accumulate(result.flops.begin(), result.flops.end(),
                            result.flops.empty() ? std::numeric_limits<double>::quiet_NaN() : 0.0,
                            [](double sum, std::int64_t flops) { return sum + static_cast<double>(flops); }));
        sums.scored.push_back(result.scored);
        sums.histogram.push_back(result.histogram);
    }
    const auto last = static_cast<std::int32_t>(table.columns.max_steps());
    sums.halted = std::any_of(table.ran.begin(), table.ran.end(), [&](std::int32_t k) { return k < last; });
    std::size_t first = 0;
    for (std::size_t s = 0; s < table.sequences.size(); ++s) {
        const std::size_t end = first + static_cast<std::size_t>(table.sequences[s]);
        Sums::Piece piece{table.clusters[s],
                          std::count(scored.begin() + static_cast<std::ptrdiff_t>(first),
                                     scored.begin() + static_cast<std::ptrdiff_t>(end), 1),
                          std::vector<double>(results.size() * width, 0.0)};
        for (std::size_t r = 0; r < results.size(); ++r) {
            const ReplayResult& result = results[r];
            double* to = piece.values.data() + r * width;
            for (std::size_t i = first; i < end; ++i) {
                if (scored[i] != 0) {
                    to[0] += result.steps[i];
                    to[1] += static_cast<double>(result.nll[i]);
                    to[2] += result.flops.empty() ? 0 : static_cast<double>(result.flops[i]);
                }
            }
        }
        if (piece.tokens > 0) {
            sums.pieces.push_back(std::move(piece));
        }
        first = end;
    }
    return sums;
}

/// Takes out rows without tokens.
std::vector<double> without_gaps(const std::vector<double>& values, const std::vector<std::int64_t>& tokens) {
    std::vector<double> kept;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (tokens[i] > 0) {
            kept.push_back(values[i]);
        }
    }
    return kept;
}

} // namespace

ReplayScan::ReplayScan(const TraceReader& trace, const RunInfo& run, const std::vector<PolicySignal>& columns,
                       const BootstrapOptions& options, const std::vector<PolicySignal>& also)
    : options_(options) {
    reader_.emplace(trace, run, columns, also);
    scan_.emplace(std::vector{&trace}, tokens_of(reader_->sequences()), options.progress, options.stop,
                  options.threads);
    ClusterNumbers scored;
    for (const SequenceInfo& sequence : reader_->sequences()) {
        if (sequence.scored_tokens > 0) {
            (void)scored.of(sequence);
        }
    }
    clusters_ = scored.count();
}

bool ReplayScan::suffices(std::int64_t parts) const {
    return draws_whole_clusters(options_, clusters_ / parts);
}

ReplayScan::Setting ReplayScan::Setting::of(const PolicySpec& spec) {
    return {spec.text(), [spec](const ReplayTable& table, ReplayResult& result) {
                ponderscope::replay(table, spec, result);
            }};
}

std::vector<std::size_t> ReplayScan::tokens_before() const {
    if (table_ == nullptr) {
        return reader_->tokens_before();
    }
    std::vector<std::size_t> before{0};
    for (const std::int64_t tokens : table_->sequences) {
        before.push_back(before.back() + static_cast<std::size_t>(tokens));
    }
    return before;
}

void ReplayScan::each(const std::function<Commit(const ReplayTable&, std::size_t)>& visit) const {
    if (table_ != nullptr) {
        if (const Commit commit = visit(*table_, 0)) {
            commit();
        }
        return;
    }
    // Enough for loops over tokens, and few beside what a worker holds of its files.
    constexpr std::int64_t tokens_at_once = 1 << 14;
    scan_->each([&](const SequenceScan::Part& part) {
        std::vector<Commit> commits;
        auto begin = static_cast<std::size_t>(part.first);
        std::int64_t tokens = 0;
        for (auto s = static_cast<std::size_t>(part.first); s < static_cast<std::size_t>(part.end); ++s) {
            tokens += reader_->sequences()[s].tokens;
            if (tokens < tokens_at_once && s + 1 < static_cast<std::size_t>(part.end)) {
                continue;
            }
            commits.push_back(visit(reader_->read(*part.readers[0], begin, s + 1), begin));
            begin = s + 1;
            tokens = 0;
        }
        return [commits = std::move(commits)] {
            for (const Commit& commit : commits) {
                commit();
            }
        };
    });
}

void ReplayScan::find_learned_rate() {
    const ReplayTable& none = reader_->none();
    if (none.columns.has(PolicySignal::continue_value) && none.context.has_own_rule()) {
        const Setting own = Setting::of(PolicySpec::parse("learned"));
        reader_->set_learned_rate(replays(std::span(&own, 1)).totals.front().mean_steps);
    }
}

ScoredReplays ReplayScan::replays_of_table(std::span<const Setting> settings) const {
    ScoredReplays found;
    found.halted = table_->halted;
    ScoredRows scored(*table_);
    std::vector<float> in_all = table_->nll; // NaN where a replay has none
    bool some_missing = false;
    for (const Setting& setting : settings) {
        ReplayResult& result = found.totals.emplace_back();
        setting.replay(*table_, result);
        found.settings.push_back(scored.of(setting.policy, result));
        for (const std::size_t row : scored.rows) {
            if (std::isnan(result.nll[row])) {
                in_all[row] = result.nll[row];
                some_missing = true;
            }
        }
        result.steps = {};
        result.nll = {};
        result.flops = {};
    }
    if (some_missing) {
        const std::span<const float> column(in_all);
        const ScoredRows kept(*table_, std::span(&column, 1));
        for (ScoredSetting& setting : found.settings) {
            for (std::vector<double>* values : {&setting.steps, &setting.nll, &setting.flops}) {
                std::vector<double> all(table_->tokens());
                for (std::size_t i = 0; i < values->size(); ++i) {
                    all[scored.rows[i]] = (*values)[i];
                }
                *values = values->empty() ? *values : kept.of(all);
            }
        }
        scored = kept;
    }
    found.rows = std::move(scored.layout);
    return found;
}

ScoredReplays ReplayScan::replays(std::span<const Setting> settings) const {
    if (table_ != nullptr) {
        return replays_of_table(settings);
    }
    const std::size_t clusters =
        reader_->clusters().empty()
            ? 0
            : static_cast<std::size_t>(
                  *std::max_element(reader_->clusters().begin(), reader_->clusters().end()) + 1);
    const bool costs = reader_->none().flops.has_value();
    ScoredReplays found;
    std::vector<std::int64_t> cluster_tokens(clusters);
    for (const Setting& setting : settings) {
        const std::vector<double> zeros(clusters);
        found.settings.push_back({setting.policy, zeros, zeros, costs ? zeros : std::vector<double>()});
        found.totals.emplace_back();
        found.totals.back().histogram.assign(static_cast<std::size_t>(reader_->run().max_steps) + 1, 0);
    }
    std::vector<double> nll(settings.size()), flops(settings.size());
    std::int64_t tokens = 0;
    each([&](const ReplayTable& table, std::size_t) {
        std::vector<ReplayResult> results(settings.size());
        for (std::size_t r = 0; r < settings.size(); ++r) {
            settings[r].replay(table, results[r]);
        }
        return [&, sums = sums_of(table, results)] {
            tokens += sums.tokens;
            found.halted = found.halted || sums.halted;
            for (std::size_t r = 0; r < settings.size(); ++r) {
                ReplayResult& total = found.totals[r];
                nll[r] += sums.nll[r];
                flops[r] += sums.tokens > 0 ? sums.flops[r] : 0;
                total.scored += sums.scored[r];
                std::transform(total.histogram.begin(), total.histogram.end(), sums.histogram[r].begin(),
                               total.histogram.begin(), std::plus<>());
            }
            for (const Sums::Piece& piece : sums.pieces) {
                const auto row = static_cast<std::size_t>(piece.cluster);
                cluster_tokens[row] += piece.tokens;
                for (std::size_t r = 0; r < settings.size(); ++r) {
                    ScoredSetting& setting = found.settings[r];
                    setting.steps[row] += piece.values[3 * r];
                    setting.nll[row] += piece.values[3 * r + 1];
                    if (costs) {
                        setting.flops[row] += piece.values[3 * r + 2];
                    }
                }
            }
        };
    });
    if (std::all_of(cluster_tokens.begin(), cluster_tokens.end(), [](std::int64_t n) { return n == 0; })) {
        throw InputError(reader_->none().run +
                         ": expected tokens with a next token, found none; let the recording get further.");
    }
    for (std::size_t r = 0; r < settings.size(); ++r) {
        found.totals[r].finish(nll[r], flops[r], tokens);
        for (std::vector<double>* values :
             {&found.settings[r].steps, &found.settings[r].nll, &found.settings[r].flops}) {
            *values = without_gaps(*values, cluster_tokens);
        }
    }
    std::erase(cluster_tokens, 0);
    found.rows = RowLayout::of_clusters(std::move(cluster_tokens));
    return found;
}

} // namespace ponderscope
