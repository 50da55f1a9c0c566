// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/run_comparison.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/stats/paired.h"
#include "core/stats/scan.h"
#include "core/stats/significance.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace ponderscope {
namespace {

using Place = RunComparison::Place;

struct ComparedRun {
    TraceReader reader;
    RunInfo info;
};

bool asked_for(const ComparisonRequest& request, const Place& place) {
    const std::int64_t target = std::int64_t{place.row} + 1;
    return (!request.sequence || place.sequence == *request.sequence) &&
           (!request.tokens || (target >= (*request.tokens)[0] && target < (*request.tokens)[1]));
}

/// Reduces a sample to the tokens at \p places. The sample must contain them.
void keep_places(PairedSample& sample, const std::vector<Place>& places) {
    std::size_t from = 0;
    const auto columns = {&sample.a, &sample.b, &sample.bytes, &sample.steps_b, &sample.flops_b};
    for (std::size_t to = 0; to < places.size(); ++to, ++from) {
        while (sample.places[from] < places[to]) {
            ++from;
        }
        for (std::vector<double>* column : columns) {
            (*column)[to] = (*column)[from];
        }
    }
    for (std::vector<double>* column : columns) {
        column->resize(places.size());
    }
    sample.steps_a.clear();
    sample.right_a.clear();
    sample.right_b.clear();
    sample.places.clear();
}

TokenLayout layout_of_places(const std::vector<Place>& places, const std::vector<SequenceInfo>& sequences) {
    LayoutBuilder lying;
    for (const Place& place : places) {
        lying.add(sequences.at(static_cast<std::size_t>(place.sequence)), place.row);
    }
    return std::move(lying.layout);
}

/// The sequences of the first run, each with its group in any of the runs. InputError: the runs name
/// different groups for a sequence.
std::vector<SequenceInfo> grouped_sequences(const std::vector<ComparedRun>& sources) {
    std::vector<SequenceInfo> sequences = sources.front().reader.sequences(sources.front().info.id);
    const ComparedRun* named = &sources.front(); // the last run that named a group
    for (const ComparedRun& source : sources) {
        const std::vector<SequenceInfo> own = source.reader.sequences(source.info.id);
        for (std::size_t s = 0; s < std::min(sequences.size(), own.size()); ++s) {
            if (own[s].group.empty() || own[s].group == sequences[s].group) {
                continue;
            }
            (void)ClusterNumbers().of(sequences[s], own[s], named->info.name + " and " + source.info.name);
            sequences[s].group = own[s].group;
            named = &source;
        }
    }
    return sequences;
}

void label_runs(std::vector<RunComparison::Run>& runs, const ComparisonRequest& request) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const bool repeats = std::any_of(runs.begin(), runs.end(), [&](const RunComparison::Run& other) {
            return &other != &runs[i] && other.info.name == runs[i].info.name;
        });
        runs[i].label = (repeats ? request.runs[i].trace.stem().string() + " · " : "") + runs[i].info.name +
                        (runs[i].info.complete ? "" : " (partial)");
    }
}

/// Ids of the tokens that the compared rows predict; -1: none.
std::vector<std::int32_t> predicted_ids(const RunComparison& comparison, const TraceReader& reader,
                                        const RunInfo& run, const std::stop_token& stop) {
    std::vector<std::int32_t> ids;
    ids.reserve(comparison.places.size());
    TokenColumns tokens;
    std::int32_t sequence = -1;
    for (const RunComparison::Place& place : comparison.places) {
        if (place.sequence != sequence) {
            throw_if_stopped(stop);
            sequence = place.sequence;
            tokens = reader.tokens(run.id, sequence);
        }
        const auto at = static_cast<std::size_t>(place.row) + 1;
        ids.push_back(at < tokens.size() ? tokens.id[at] : -1);
    }
    return ids;
}

} // namespace

RunComparison compare_runs(const ComparisonRequest& request, const ProgressSink& progress,
                           const std::stop_token& stop) {
    if (request.runs.empty()) {
        throw InputError(ErrorId::usage_missing, "There is no run to compare; name one.");
    }
    // Progress: 1000 units for reading a run, and 1000 for its bootstrap. \c share: units done of these.
    const auto report = [&](std::size_t done, std::int64_t share = 0) {
        report_progress(progress,
                        {"comparing", static_cast<std::int64_t>(1000 * done) + share,
                         static_cast<std::int64_t>(2000 * request.runs.size()), "thousandths of a run"});
    };
    RunComparison result;
    result.replicates = request.replicates;
    std::vector<ComparedRun> sources;
    std::vector<PairedSample> samples; // the first run paired with each run, also with itself
    for (const ComparisonRequest::Run& named : request.runs) {
        report(sources.size());
        TraceReader reader = TraceReader::open(named.trace);
        RunInfo info = find_run(reader, named.run);
        sources.push_back({std::move(reader), std::move(info)});
        const ComparedRun& first = sources.front();
        const ComparedRun& own = sources.back();
        const std::vector<SequenceInfo> sequences = own.reader.sequences(own.info.id);
        if (request.sequence &&
            std::ranges::find(sequences, *request.sequence, &SequenceInfo::number) == sequences.end()) {
            throw InputError(ErrorId::trace_signal, own.reader.path(),
                             "sequence " + std::to_string(*request.sequence) + " in run \"" + own.info.name +
                                 "\"",
                             "none", "choose another sequence");
        }
        if (own.info.scored_tokens == 0) {
            throw InputError(ErrorId::run_unscored,
                             "Run \"" + own.info.name +
                                 "\" has no scored token; wait until the run has more tokens.");
        }
        samples.push_back(pair_runs(first.reader, first.info, own.reader, own.info, {{}, stop}));
        if (samples.size() > 1) {
            add_new(result.notices, samples.back().notices);
        }
        std::vector<Place> common;
        std::ranges::copy_if(samples.back().places, std::back_inserter(common),
                             [&](const Place& place) { return asked_for(request, place); });
        if (samples.size() > 1) {
            std::vector<Place> both;
            std::ranges::set_intersection(result.places, common, std::back_inserter(both));
            common = std::move(both);
        }
        result.places = std::move(common);
    }
    if (result.places.empty()) {
        throw InputError(
            ErrorId::run_unscored,
            sources.size() == 1
                ? "Run \"" + sources.front().info.name +
                      "\" has no scored token in the selection; "
                      "choose another sequence or more tokens."
                : "The runs have no scored token in common in the selection; compare runs of the same "
                  "text, or choose more tokens.");
    }

    result.layout = layout_of_places(result.places, grouped_sequences(sources));
    BootstrapOptions options;
    options.block = request.block;
    options.replicates = request.replicates;
    options.stop = stop;
    for (PairedSample& sample : samples) {
        keep_places(sample, result.places);
        sample.layout = result.layout;
        sample.notices.clear();
    }
    // One resampling for all runs, chosen from their differences and their losses.
    std::vector<std::vector<double>> differences;
    std::vector<std::span<const double>> series;
    for (const PairedSample& sample : samples) {
        series.emplace_back(sample.b);
        differences.emplace_back(sample.b);
        for (std::size_t t = 0; t < sample.a.size(); ++t) {
            differences.back()[t] -= sample.a[t];
        }
    }
    series.insert(series.end(), differences.begin() + 1, differences.end());
    result.resampling = choose_resampling(result.layout, series, options);
    options = result.resampling.apply(options);

    const auto add_run = [&](std::size_t i, const Estimate& nll, const Estimate& perplexity,
                             const Estimate& bits_per_byte) -> RunComparison::Run& {
        RunComparison::Run& run = result.runs.emplace_back();
        run.info = sources[i].info;
        run.token_nll.assign(samples[i].b.begin(), samples[i].b.end());
        run.nll = nll;
        run.perplexity = perplexity;
        run.bits_per_byte = bits_per_byte;
        run.difference = run.correlation = unknown_estimate;
        run.mean_steps = mean_of_values(samples[i].steps_b);
        run.mean_flops = mean_of_values(samples[i].flops_b);
        return run;
    };
    add_new(result.notices, result.resampling.notices());
    // The first run has the same interval in every pair. It is paired with itself only if it is alone.
    for (std::size_t i = sources.size() > 1 ? 1 : 0; i < sources.size(); ++i) {
        options.progress = [&](const Progress& now) {
            report(sources.size() + i, now.total > 0 ? now.done * 1000 / now.total : 0);
        };
        const PairedComparison pair = compare_paired(samples[i], options);
        if (result.runs.empty()) {
            add_run(0, pair.mean_a, pair.perplexity_a, pair.bits_per_byte_a);
        }
        if (i > 0) {
            RunComparison::Run& run = add_run(i, pair.mean_b, pair.perplexity_b, pair.bits_per_byte_b);
            run.difference = pair.difference;
            run.correlation = pair.pearson;
            add_new(result.notices, pair.notices);
        }
    }
    label_runs(result.runs, request);
    report(2 * sources.size());
    return result;
}

DataTable table_of(const RunComparison& comparison) {
    using enum CellFormat;
    DataTable table{
        {},
        {{"run", "Run", text},
         {"tokens", "Tokens", count},
         {"nll", "NLL (nats)", number, 3},
         {.key = "difference",
          .title = "A \u2212 run",
          .format = difference,
          .decimals = 3,
          .tip = "The mean NLL of A minus that of this run, over the same tokens. Below 0, A is better."},
         {"perplexity", "Perplexity", number, 2},
         {.key = "bits_per_byte", .title = "Bits/byte", .decimals = 3, .brief = true},
         {"mean_steps", "Steps", number, 2},
         {"mean_flops", "FLOPs/token", si}},
        {}};
    const auto tokens = static_cast<std::int64_t>(comparison.places.size());
    for (const RunComparison::Run& run : comparison.runs) {
        table.rows.push_back({run.label, tokens, run.nll, run.difference, run.perplexity, run.bits_per_byte,
                              run.info.max_steps == 0 ? Cell() : Cell(run.mean_steps), run.mean_flops});
    }
    return table;
}

RunComparison only_places(const RunComparison& comparison, const std::vector<RunComparison::Place>& places) {
    std::vector<std::size_t> chosen;
    RunComparison result;
    result.resampling = comparison.resampling;
    result.notices = comparison.notices;
    for (std::size_t i = 0; i < comparison.places.size(); ++i) {
        if (std::binary_search(places.begin(), places.end(), comparison.places[i])) {
            const bool next = !chosen.empty() && chosen.back() + 1 == i;
            result.layout.add(comparison.places[i].sequence, next);
            result.places.push_back(comparison.places[i]);
            chosen.push_back(i);
        }
    }
    const std::vector<std::size_t> units = units_of(comparison.layout, comparison.resampling);
    const auto mean_of = [&](auto value) {
        GroupTotals totals;
        for (const std::size_t i : chosen) {
            totals.add(units[i], value(i));
        }
        return totals.count > 0 ? totals.interval() : unknown_estimate;
    };
    const std::vector<float>& first = comparison.runs.front().token_nll;
    for (const RunComparison::Run& run : comparison.runs) {
        RunComparison::Run part = run;
        part.token_nll.clear();
        for (const std::size_t i : chosen) {
            part.token_nll.push_back(run.token_nll[i]);
        }
        part.nll = mean_of([&](std::size_t i) { return static_cast<double>(run.token_nll[i]); });
        part.perplexity = exponential(part.nll);
        part.difference = &run == &comparison.runs.front() ? unknown_estimate : mean_of([&](std::size_t i) {
            return static_cast<double>(first[i]) - static_cast<double>(run.token_nll[i]);
        });
        part.bits_per_byte = part.correlation = unknown_estimate;
        part.mean_steps = part.mean_flops = not_a_number;
        result.runs.push_back(std::move(part));
    }
    return result;
}

Winners winners_of(const RunComparison& comparison, const ComparisonRequest& request, const std::string& by,
                   const std::stop_token& stop) {
    if (comparison.runs.size() < 2) {
        throw InputError(ErrorId::usage_missing,
                         "There is no second run over this text; record one to compare with.");
    }
    const std::vector<float>& a = comparison.runs.front().token_nll;
    const std::vector<float>& b = comparison.runs[1].token_nll;
    TokenGrouping groups;
    if (by == "position") {
        std::vector<std::int64_t> positions;
        for (const RunComparison::Place& place : comparison.places) {
            positions.push_back(place.row + std::int64_t{1});
        }
        groups = group_by_position(positions);
    } else if (by == "difficulty") {
        std::vector<double> values;
        for (std::size_t i = 0; i < a.size(); ++i) {
            values.push_back((static_cast<double>(a[i]) + static_cast<double>(b[i])) / 2);
        }
        groups = group_by_fifths(values);
    } else {
        const TraceReader reader = TraceReader::open(request.runs.front().trace);
        const RunInfo run = comparison.runs.front().info;
        const std::vector<std::int32_t> ids = predicted_ids(comparison, reader, run, stop);
        const auto bytes = [&](std::int32_t id) {
            return id < 0 ? std::string() : reader.token_bytes(run.id, id);
        };
        groups = by == "type" ? group_by_type(ids, bytes) : group_by_class(ids, bytes);
    }
    std::vector<GroupTotals> totals(groups.groups.size());
    std::vector<std::int64_t> b_lower(totals.size());
    const std::vector<std::size_t> units = units_of(comparison.layout, comparison.resampling);
    for (std::size_t i = 0; i < groups.group.size(); ++i) {
        if (groups.group[i] >= 0) {
            const auto g = static_cast<std::size_t>(groups.group[i]);
            totals[g].add(units[i], static_cast<double>(a[i]) - static_cast<double>(b[i]));
            b_lower[g] += b[i] < a[i] ? 1 : 0;
        }
    }
    Winners winners{comparison.runs.front().label, comparison.runs[1].label, by, {}};
    for (std::size_t g = 0; g < totals.size(); ++g) {
        const GroupTotals& one = totals[g];
        if (one.count == 0) {
            continue;
        }
        const Estimate difference = one.interval();
        winners.rows.push_back({groups.groups[g], one.count, difference,
                                static_cast<double>(b_lower[g]) / static_cast<double>(one.count),
                                std::isnan(difference.low) ? not_a_number : sign_flip_p(one.sums)});
    }
    set_q(winners.rows);
    return winners;
}

} // namespace ponderscope
