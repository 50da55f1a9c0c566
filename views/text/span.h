// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"

#include <QString>

#include <limits>
#include <memory>
#include <stop_token>
#include <vector>

namespace ponderscope {

/// Tokens [first, last) of a sequence.
struct TokenSpan {
    qint64 first = 0;
    qint64 last = 0;
    [[nodiscard]] bool isEmpty() const { return last <= first; }
    [[nodiscard]] qint64 size() const { return last - first; }
    [[nodiscard]] bool contains(qint64 token) const { return token >= first && token < last; }
    friend bool operator==(const TokenSpan&, const TokenSpan&) = default;
};

/// A mean with the 95 % interval of its bootstrap; NaN bounds if there is none.
struct SpanMean {
    double mean = std::numeric_limits<double>::quiet_NaN();
    double low = std::numeric_limits<double>::quiet_NaN();
    double high = std::numeric_limits<double>::quiet_NaN();
};

/// Statistics of a span in a run: means over the tokens that have an NLL, in the attribution of the window.
struct SpanStatistics {
    qint64 tokens = 0;
    qint64 scored = 0;
    SpanMean nll, entropy; ///< nats
    SpanMean steps;        ///< NaN without pondering
    SpanMean difference;   ///< NLL of A minus B, paired; NaN if B does not read the same tokens
    QString about;         ///< a sentence: the basis of the intervals, or why there are none
};

/// \p b: null without a B. Intervals as core/stats makes them: circular blocks inside the span, with a length
/// chosen from the data. None if fewer than two blocks fit. Slow for long spans; Cancelled by \p stop.
SpanStatistics span_statistics(const SequenceData& a, const SequenceData* b, qint64 maxSteps, TokenSpan span,
                               Attribution attribution, const std::stop_token& stop = {});
/// The same for single tokens, ascending, at any positions: means over them, and intervals from blocks of the
/// whole sequence, so that neighbours stay dependent (the statistic is a ratio).
SpanStatistics subset_statistics(const SequenceData& a, const SequenceData* b, qint64 maxSteps,
                                 const std::vector<qint64>& tokens, Attribution attribution,
                                 const std::stop_token& stop = {});
/// The same for tokens of many sequences, one sequence after the other: intervals from whole clusters of
/// sequences if there are enough, else from blocks.
class SubsetMeans {
public:
    explicit SubsetMeans(Attribution attribution);
    ~SubsetMeans();
    /// \p cluster: from 0, ascending. \p b: null if B does not have that sequence.
    void add(const SequenceData& a, const SequenceData* b, std::int64_t cluster,
             const std::vector<qint64>& tokens);
    /// \p whole: a word for the added tokens. Cancelled by \p stop.
    [[nodiscard]] SpanStatistics finish(qint64 maxSteps, const QString& whole,
                                        const std::stop_token& stop = {});
    struct Impl;

private:
    std::unique_ptr<Impl> impl_;
};

/// The means in one line: "NLL 4.31 [3.90, 4.80] · steps 2.10 · …".
QString describe_means(const SpanStatistics& statistics);
/// The statistics in one line: "37 tokens (12 to 48) · NLL 4.31 [3.90, 4.80] · …".
QString describe_span(const SpanStatistics& statistics, TokenSpan span);

/// Largest number of tokens of an excerpt.
inline constexpr qint64 most_copied = 20'000;
/// The text itself; ids if there is no text.
QString span_text(const SequenceData& data, TokenSpan span);

/// Gives the tokens of a span a class of an annotation beside the trace, which is made if it does not exist;
/// other tokens keep theirs. An empty class takes the span's away. InputError: the annotation has numbers, or
/// an invalid name. EnvironmentError.
void label_span(const RunKey& key, qint64 sequence, TokenSpan span, const QString& annotation,
                const QString& name);

} // namespace ponderscope
