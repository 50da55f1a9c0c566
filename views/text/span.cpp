// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/span.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "views/common/format.h"
#include "views/common/paths.h"

#include <QStringList>

#include <algorithm>
#include <cmath>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

SpanMeans span_means(const SequenceData& a, const SequenceData* b, qint64 maxSteps, TokenSpan span,
                     Attribution attribution) {
    const bool paired = b != nullptr && static_cast<std::size_t>(span.last) <= b->tokens.size() &&
                        std::equal(a.tokens.id.begin() + span.first, a.tokens.id.begin() + span.last,
                                   b->tokens.id.begin() + span.first);
    SpanMeans sums{0, 0, 0, 0, 0};
    for (qint64 token = span.first; token < span.last; ++token) {
        const qint64 row = attribution == Attribution::predicted ? token - 1 : token;
        const auto at = static_cast<std::size_t>(row);
        if (row < 0 || at >= a.tokens.size() || !std::isfinite(a.tokens.nll[at])) {
            continue;
        }
        ++sums.scored;
        sums.nll += static_cast<double>(a.tokens.nll[at]);
        sums.entropy += static_cast<double>(a.tokens.entropy[at]); // NaN if the writer omits it
        sums.steps += maxSteps > 0 ? static_cast<double>(a.tokens.steps[at]) : not_a_number;
        sums.difference +=
            paired ? static_cast<double>(a.tokens.nll[at]) - static_cast<double>(b->tokens.nll[at])
                   : not_a_number;
    }
    for (double* sum : {&sums.nll, &sums.entropy, &sums.steps, &sums.difference}) {
        *sum /= static_cast<double>(sums.scored); // NaN without scored tokens
    }
    return sums;
}

QString describe_span(const SpanMeans& means, TokenSpan span) {
    QStringList parts{u"%1 tokens (%2 to %3)"_s.arg(format_count(span.size()), format_count(span.first),
                                                    format_count(span.last - 1))};
    const std::pair<QString, QString> numbers[] = {{u"NLL"_s, format_nats(means.nll)},
                                                   {u"steps"_s, format_nats(means.steps)},
                                                   {u"entropy"_s, format_nats(means.entropy)},
                                                   {u"NLL of A − B"_s, format_difference(means.difference)}};
    for (const auto& [name, number] : numbers) {
        if (number != QStringView(no_value)) {
            parts << name + u' ' + number;
        }
    }
    return parts.join(u" · "_s);
}

QString span_text(const SequenceData& data, TokenSpan span) {
    const auto first = static_cast<std::size_t>(span.first);
    const auto last = static_cast<std::size_t>(span.last);
    if (data.text.empty()) {
        QStringList ids;
        for (std::size_t token = first; token < last; ++token) {
            ids << QString::number(data.tokens.id[token]);
        }
        return ids.join(u' ');
    }
    QByteArray bytes;
    for (std::size_t token = first; token < last; ++token) { // each character with the token where it begins
        const CharacterSpan own = characters_of(data.tokens, data.text, token, token > first);
        bytes.append(own.bytes.data(), static_cast<qsizetype>(own.bytes.size()));
    }
    return QString::fromUtf8(bytes);
}

void label_span(const RunKey& key, qint64 sequence, TokenSpan span, const QString& annotation,
                const QString& name) {
    const std::filesystem::path path = path_of(key.trace);
    check_can_annotate(path);
    const TraceReader reader = TraceReader::open(path);
    const std::vector<RunInfo> runs = reader.runs();
    const auto run = std::ranges::find(runs, key.run, &RunInfo::id);
    if (run == runs.end()) {
        throw InputError(ErrorId::trace_run, path, "the run to label", "a trace without this run",
                         "open the trace again");
    }
    const std::vector<SequenceInfo> sequences = reader.sequences(run->id);
    Annotation labels;
    labels.name = annotation.toStdString();
    labels.category = true;
    for (const SequenceInfo& one : sequences) {
        labels.values.emplace_back(static_cast<std::size_t>(one.tokens), not_a_number);
    }
    if (const std::optional<AnnotationReader> there = AnnotationReader::beside(path)) {
        for (const AnnotationInfo& one : there->fitting(*run)) {
            if (one.name != labels.name) {
                continue;
            }
            if (!one.category) {
                throw InputError(ErrorId::annotation_table,
                                 labels.name + " is an annotation with numbers; rename the label.");
            }
            labels.classes = one.classes;
            for (std::size_t s = 0; s < sequences.size(); ++s) {
                labels.values[s] = there->values(one, sequences[s].number, 0, sequences[s].tokens);
            }
        }
    }
    double value = not_a_number;
    if (!name.isEmpty()) {
        const auto known = std::ranges::find(labels.classes, name.toStdString());
        value = static_cast<double>(known - labels.classes.begin());
        if (known == labels.classes.end()) {
            labels.classes.push_back(name.toStdString());
        }
    }
    for (std::size_t s = 0; s < sequences.size(); ++s) {
        for (qint64 token = span.first;
             sequences[s].number == sequence && token < std::min<qint64>(span.last, sequences[s].tokens);
             ++token) {
            labels.values[s][static_cast<std::size_t>(token)] = value;
        }
    }
    put_annotations(path, *run, sequences, {labels});
}

} // namespace ponderscope
