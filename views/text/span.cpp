// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/span.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/stats/bootstrap.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "views/common/format.h"
#include "views/common/paths.h"

#include <QStringList>

#include <algorithm>
#include <array>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

/// The length of blocks costs n √n: beyond this the run's own interval serves.
constexpr qint64 most_resampled = 200'000;
/// The same of whole clusters, of which only sums are kept: memory.
constexpr qint64 most_drawn = 4'000'000;
/// Fewer values do not tell how they hang together (block_length.h).
constexpr std::int64_t least_resampled = 8;

qint64 row_of(qint64 token, Attribution attribution) {
    return attribution == Attribution::predicted ? token - 1 : token;
}

/// Whether both runs read the same tokens in \p span.
bool agree(const SequenceData& a, const SequenceData& b, TokenSpan span) {
    return static_cast<std::size_t>(span.last) <= b.tokens.size() &&
           std::equal(a.tokens.id.begin() + span.first, a.tokens.id.begin() + span.last,
                      b.tokens.id.begin() + span.first);
}

QString with_interval(const SpanMean& mean, bool difference) {
    const auto number = [&](double value) {
        return difference ? format_difference(value) : format_nats(value);
    };
    return std::isnan(mean.low) || mean.low == mean.high
               ? number(mean.mean)
               : number(mean.mean) + u" [%1, %2]"_s.arg(number(mean.low), number(mean.high));
}

} // namespace

/// Means over chosen tokens of one stretch or of many, with intervals from blocks of all of their tokens, or
/// from whole clusters.
struct SubsetMeans::Impl {
    static constexpr std::size_t width = 5; // number, NLL, entropy, steps, difference

    /// The chosen ones of tokens [first, last).
    template <typename Chosen>
    void add(const SequenceData& a, const SequenceData* b, TokenSpan span, std::int64_t cluster,
             Chosen chosen);
    [[nodiscard]] SpanStatistics finish(qint64 maxSteps, const QString& whole, const std::stop_token& stop);

    Attribution attribution = Attribution::predicted;
    SpanStatistics result;
    std::array<double, width> totals{};
    bool all_paired = true;
    bool all_entropies = true;
    bool kept = true; ///< whether `in` and the values are kept; not for more tokens than are resampled
    std::vector<double> values, nll, difference;
    std::vector<bool> in;
    TokenLayout layout;
};

template <typename Chosen>
void SubsetMeans::Impl::add(const SequenceData& a, const SequenceData* b, TokenSpan span,
                            std::int64_t cluster, Chosen chosen) {
    const bool paired = b != nullptr && agree(a, *b, span);
    qint64 before = -2;
    for (qint64 token = span.first; token < span.last; ++token) {
        const bool counts = chosen(token);
        result.tokens += counts ? 1 : 0;
        const qint64 row = row_of(token, attribution);
        const auto at = static_cast<std::size_t>(row);
        if (row < 0 || at >= a.tokens.size() || !std::isfinite(a.tokens.nll[at])) {
            continue;
        }
        const bool has_entropy = std::isfinite(a.tokens.entropy[at]); // not every writer gives it
        all_entropies = all_entropies && (has_entropy || !counts);
        const bool both = paired && at < b->tokens.size() && std::isfinite(b->tokens.nll[at]);
        all_paired = all_paired && (both || !counts);
        const double x = counts ? 1 : 0;
        const double loss = a.tokens.nll[at];
        const double change = both ? loss - static_cast<double>(b->tokens.nll[at]) : 0;
        const double entropy = has_entropy ? static_cast<double>(a.tokens.entropy[at]) : 0;
        const std::array<double, width> parts{x, x * loss, x * entropy,
                                              x * static_cast<double>(a.tokens.steps[at]), x * change};
        for (std::size_t i = 0; i < width; ++i) {
            totals[i] += parts[i];
        }
        result.scored += counts ? 1 : 0;
        if (kept) {
            in.push_back(counts);
            nll.push_back(loss);
            difference.push_back(change);
            values.insert(values.end(), parts.begin(), parts.end());
            layout.add(cluster, row == before + 1);
            kept = in.size() <= most_drawn;
        }
        before = row;
    }
}

SpanStatistics SubsetMeans::Impl::finish(qint64 maxSteps, const QString& whole, const std::stop_token& stop) {
    SpanMean* means[width - 1] = {&result.nll, &result.entropy, &result.steps, &result.difference};
    for (std::size_t i = 1; i < width && result.scored > 0; ++i) {
        means[i - 1]->mean = totals[i] / totals[0];
    }
    if (result.scored == 0) {
        result.about = u"The span has no NLL."_s;
        return result;
    }
    BootstrapOptions options;
    options.replicates = shown_replicates;
    options.threads = 1;
    options.stop = stop;
    layout.close_gaps();
    const bool clusters = draws_whole_clusters(options, layout.clusters());
    if (result.scored < least_resampled) {
        result.about =
            u"No interval: fewer than %1 tokens do not show how far their NLLs are correlated."_s.arg(
                least_resampled);
    } else if (const qint64 most = clusters ? most_drawn : most_resampled;
               !kept || static_cast<qint64>(in.size()) > most) {
        result.about = u"No interval: the %1 is longer than %2 tokens; the Library has the run's."_s.arg(
            whole, format_count(most));
    } else {
        const PrefixSums sums(values, width, layout);
        // Replace each value by its contribution to the error of the mean; 0 for tokens outside the mean.
        for (std::size_t i = 0; i < nll.size(); ++i) {
            nll[i] = in[i] ? nll[i] - result.nll.mean : 0;
            difference[i] = in[i] ? difference[i] - result.difference.mean : 0;
        }
        const std::span<const double> series[] = {nll, difference};
        const Resampling how =
            choose_resampling(sums.layout(), std::span(series).first(all_paired ? 2 : 1), options);
        std::vector<Statistic> statistics;
        for (std::size_t i = 1; i < width; ++i) {
            statistics.emplace_back([i](std::span<const double> of, std::int64_t) {
                return of[0] > 0 ? of[i] / of[0] : not_a_number;
            });
        }
        const bool enough = how.units >= 2;
        const std::vector<Estimate> estimates =
            enough ? bootstrap(sums, statistics, how.apply(options)) : std::vector<Estimate>();
        for (std::size_t i = 0; i < estimates.size(); ++i) {
            means[i]->low = estimates[i].low;
            means[i]->high = estimates[i].high;
        }
        const QString words = QString::fromStdString(how.words());
        result.about =
            !enough
                ? u"No interval: the %1 has fewer than two blocks of %2 tokens."_s.arg(whole).arg(how.block)
            : clusters
                ? u"95 % intervals: %1."_s.arg(words)
                : u"95 % intervals: %1. They are about other parts of this text, not about other texts."_s
                      .arg(words);
        constexpr double few = 10;
        if (enough && how.units < few) {
            result.about +=
                u' ' + u"They are rough, because there are only %1 blocks."_s.arg(std::floor(how.units));
        }
    }
    if (maxSteps <= 0) {
        result.steps = {};
    }
    if (!all_paired) {
        result.difference = {};
    }
    if (!all_entropies) {
        result.entropy = {};
    }
    return result;
}

SubsetMeans::SubsetMeans(Attribution attribution) : impl_(std::make_unique<Impl>()) {
    impl_->attribution = attribution;
}
SubsetMeans::~SubsetMeans() = default;

void SubsetMeans::add(const SequenceData& a, const SequenceData* b, std::int64_t cluster,
                      const std::vector<qint64>& tokens) {
    std::vector<bool> chosen(a.tokens.size());
    for (const qint64 token : tokens) {
        if (token >= 0 && static_cast<std::size_t>(token) < chosen.size()) {
            chosen[static_cast<std::size_t>(token)] = true;
        }
    }
    impl_->add(a, b, {0, static_cast<qint64>(a.tokens.size())}, cluster,
               [&](qint64 token) { return chosen[static_cast<std::size_t>(token)]; });
}

SpanStatistics SubsetMeans::finish(qint64 maxSteps, const QString& whole, const std::stop_token& stop) {
    return impl_->finish(maxSteps, whole, stop);
}

SpanStatistics span_statistics(const SequenceData& a, const SequenceData* b, qint64 maxSteps, TokenSpan span,
                               Attribution attribution, const std::stop_token& stop) {
    SubsetMeans::Impl means;
    means.attribution = attribution;
    means.add(a, b, span, 0, [](qint64) { return true; });
    return means.finish(maxSteps, u"span"_s, stop);
}

SpanStatistics subset_statistics(const SequenceData& a, const SequenceData* b, qint64 maxSteps,
                                 const std::vector<qint64>& tokens, Attribution attribution,
                                 const std::stop_token& stop) {
    SubsetMeans means(attribution);
    means.add(a, b, 0, tokens);
    return means.finish(maxSteps, u"sequence"_s, stop);
}

QString describe_means(const SpanStatistics& statistics) {
    QStringList parts;
    const auto add = [&](const QString& name, const SpanMean& mean, bool difference) {
        if (!std::isnan(mean.mean)) {
            parts << name + u' ' + with_interval(mean, difference);
        }
    };
    add(u"NLL"_s, statistics.nll, false);
    add(u"steps"_s, statistics.steps, false);
    add(u"entropy"_s, statistics.entropy, false);
    add(u"NLL of A − B"_s, statistics.difference, true);
    return parts.join(u" · "_s);
}

QString describe_span(const SpanStatistics& statistics, TokenSpan span) {
    const QString means = describe_means(statistics);
    return u"%1 tokens (%2 to %3)"_s.arg(format_count(statistics.tokens), format_count(span.first),
                                         format_count(span.last - 1)) +
           (means.isEmpty() ? QString() : u" · "_s + means);
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
    for (std::size_t token = first; token < last;
         ++token) { // whole characters, of whichever token they begin in
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
    const auto run =
        std::find_if(runs.begin(), runs.end(), [&](const RunInfo& one) { return one.id == key.run; });
    if (run == runs.end()) {
        throw InputError(path, "the run that is labelled", "no such run", "open the trace again");
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
                throw InputError(labels.name + " is an annotation of numbers; give the label another name.");
            }
            labels.classes = one.classes;
            for (std::size_t s = 0; s < sequences.size(); ++s) {
                labels.values[s] = there->values(one, sequences[s].number, 0, sequences[s].tokens);
            }
        }
    }
    double value = not_a_number;
    if (!name.isEmpty()) {
        const auto known = std::find(labels.classes.begin(), labels.classes.end(), name.toStdString());
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
