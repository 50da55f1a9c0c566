// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/labels.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/stats/scan.h"
#include "core/stats/significance.h"

#include <algorithm>
#include <map>

namespace ponderscope {
namespace {

constexpr std::size_t most_classes = 256;

} // namespace

Labels Labels::recorded(const TraceReader& trace, const RunInfo& run) {
    Labels labels;
    labels.file = trace.path();
    std::map<std::string, std::int32_t> numbers;
    for (auto& [sequence, label] : trace.labels(run.id)) {
        const auto [entry, fresh] =
            numbers.emplace(label.name, static_cast<std::int32_t>(labels.classes.size()));
        if (fresh) {
            labels.classes.push_back(label.name);
        }
        if (labels.classes.size() > most_classes) {
            throw InputError(
                ErrorId::annotation_table,
                trace.name_of(run) + ": expected at most " + std::to_string(most_classes) +
                    " classes of labels, found more; record the run with another --label-field.");
        }
        labels.rows.push_back({{}, sequence, label.begin, label.end, entry->second, 0});
    }
    return labels;
}

Labels Labels::annotated(const AnnotationReader& annotations, const AnnotationInfo& annotation) {
    Labels labels;
    labels.file = annotations.path();
    labels.by_bytes = false;
    labels.classes = annotation.classes;
    TokenGrouping fifths;
    if (!annotation.category) {
        std::vector<double> values;
        annotations.each(annotation,
                         [&](std::int64_t, std::int64_t, double value) { values.push_back(value); });
        fifths = group_by_fifths(values);
        for (const TokenGrouping::Group& one : fifths.groups) {
            labels.classes.push_back(one.low == one.high
                                         ? rounded(one.low, 4)
                                         : rounded(one.low, 4) + " to " + rounded(one.high, 4));
        }
    }
    std::size_t at = 0; // index of the value
    annotations.each(annotation, [&](std::int64_t sequence, std::int64_t position, double value) {
        const auto place = static_cast<std::uint64_t>(position);
        const std::int32_t entry =
            annotation.category ? static_cast<std::int32_t>(value) : fifths.group[at++];
        // Consecutive tokens of one class form one row.
        if (!labels.rows.empty() && labels.rows.back().sequence == sequence &&
            labels.rows.back().end == place && labels.rows.back().entry == entry) {
            ++labels.rows.back().end;
        } else {
            labels.rows.push_back({{}, sequence, place, place + 1, entry, 0});
        }
    });
    return labels;
}

LabelledTokens label_tokens(const TraceReader& trace, const RunInfo& run, const Labels& labels,
                            LabelPlace place, const std::stop_token& stop) {
    const std::vector<SequenceInfo> sequences = trace.sequences(run.id);
    const PlacedTokens placed(trace, run, labels.file, labels.by_bytes, labels.rows, sequences);
    for (const SequenceInfo& sequence : sequences) {
        placed.check_length(sequence);
    }
    LabelledTokens result;
    result.classes = labels.classes;
    result.max_steps = run.max_steps;
    LayoutBuilder lying;
    for_each_scored(
        trace, run, stop,
        [&](const SequenceInfo& sequence, const TokenColumns& tokens, std::size_t i, std::int64_t position) {
            const std::size_t meant = place == LabelPlace::prediction ? i + 1 : i;
            lying.add(sequence, position);
            result.label.push_back(placed.entry_of(sequence, tokens, meant));
            result.steps.push_back(tokens.steps[i]);
            result.nll.push_back(static_cast<double>(tokens.nll[i]));
            result.unlabelled += result.label.back() < 0 ? 1 : 0;
        });
    result.layout = std::move(lying.layout);
    if (result.unlabelled == static_cast<std::int64_t>(result.label.size())) {
        throw InputError(ErrorId::annotation_table,
                         labels.file.string() + ": none of its " + std::to_string(labels.rows.size()) +
                             " labels covers a scored token of " + trace.name_of(run) +
                             ". The labels belong to another text, or to tokens that were not scored; give "
                             "labels of this text.");
    }
    return result;
}

std::vector<LabelledClass> compare_classes(const LabelledTokens& tokens, const BootstrapOptions& options) {
    // One class after the other. All at once would take memory for each pair of class and token.
    constexpr std::size_t width = 5; // of the class: tokens, steps, nats; of the others: tokens, steps
    const std::span<const double> series[] = {tokens.steps};
    const Resampling resampling = choose_resampling(tokens.layout, series, options);
    const BootstrapOptions settled = resampling.apply(options);
    std::vector<TokenGroup> groups =
        tested_groups({tokens.label, tokens.steps, tokens.nll, units_of(tokens.layout, resampling)},
                      tokens.classes.size(), tokens.max_steps, 2);
    std::vector<LabelledClass> classes;
    for (std::size_t c = 0; c < tokens.classes.size(); ++c) {
        if (groups[c].count == 0) {
            continue; // no token of the class was scored
        }
        const PrefixSums sums = sums_of(tokens.layout, resampling, width, [&](std::size_t i, double* row) {
            if (tokens.label[i] == static_cast<std::int32_t>(c)) {
                row[0] += 1;
                row[1] += tokens.steps[i];
                row[2] += tokens.nll[i];
            } else if (tokens.label[i] >= 0) {
                row[3] += 1;
                row[4] += tokens.steps[i];
            }
        });
        LabelledClass& one = classes.emplace_back();
        bootstrap(sums,
                  {{&one.steps, ratio_of(1, 0)},
                   {&one.nll, ratio_of(2, 0)},
                   {&one.steps_difference, difference_of(ratio_of(1, 0), ratio_of(4, 3))}},
                  settled);
        one.group = std::move(groups[c]);
        one.group.name = tokens.classes[c];
    }
    set_q(classes, &LabelledClass::group);
    return classes;
}

} // namespace ponderscope
