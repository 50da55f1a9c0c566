// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"

#include <QString>

#include <limits>

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

/// Means over the span's tokens that show an NLL under the given Attribution. NaN: no such token.
struct SpanMeans {
    qint64 scored = 0;
    double nll = std::numeric_limits<double>::quiet_NaN(); ///< nats
    double entropy = nll;                                  ///< nats; NaN if a token has no entropy
    double steps = nll;                                    ///< NaN without pondering steps
    double difference = nll; ///< NLL of A minus NLL of B; NaN if B has other tokens
};

/// \p b: null without a run B. Linear in the tokens of the span.
SpanMeans span_means(const SequenceData& a, const SequenceData* b, qint64 maxSteps, TokenSpan span,
                     Attribution attribution);
/// In one line: "37 tokens (12 to 48) · NLL 4.31 · …".
QString describe_span(const SpanMeans& means, TokenSpan span);

/// Largest number of tokens that can be copied at once.
inline constexpr qint64 most_copied = 20'000;
/// The text of the span; ids for runs without text.
QString span_text(const SequenceData& data, TokenSpan span);

/// Gives a span's tokens the class \p name of an annotation, in the file beside the trace. Creates a missing
/// annotation. Other tokens keep their classes. An empty \p name removes the span's classes. InputError: the
/// annotation has numbers or an invalid name. EnvironmentError: the annotations cannot be written.
void label_span(const RunKey& key, qint64 sequence, TokenSpan span, const QString& annotation,
                const QString& name);

} // namespace ponderscope
