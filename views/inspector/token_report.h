// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/common/trace_data.h"

#include <QString>

#include <vector>

namespace ponderscope {

/// A chunk with a single row of \p chunk, or without rows if \p chunk lacks the row. Decoding a whole chunk
/// at every cursor move would take too long.
SignalChunk row_of(const SignalChunk& chunk, std::int64_t row);

/// All texts and numbers of the inspector for one token, from one row of each signal.
struct TokenReport {
    struct Row {
        QString label;
        QString a; ///< "–": no value
        QString b; ///< empty without a run B
    };
    struct Candidate {
        QString text;
        double probability = 0;
        int place = 1;       ///< 1: the most probable candidate
        bool target = false; ///< the token that follows in the text
    };
    struct Step {
        int step = 0;
        std::vector<Candidate> candidates; ///< most probable first
        bool selected = false;
    };
    /// A signal by step. NaN: no value. Steps at the end that did not run are left out.
    struct Curve {
        QString name; ///< SignalInfo::name
        QString title;
        QString unit;
        std::vector<double> a;
        std::vector<double> b; ///< a single value belongs to a run with one step and is drawn as a level line
    };

    qint64 token = -1; ///< -1: empty report; the hint says what to do
    QString hint;
    QString headline; ///< the token's text without leading blanks
    QString subtitle; ///< "id 412 · bytes 33–42 · sequence 2"
    std::vector<Row> rows;
    std::vector<Step> candidates; ///< candidates of run A
    std::vector<Curve> curves;    ///< NLL first
    std::vector<Curve> gates;     ///< gates and halting masses, drawn as bars
    std::vector<QString> notes;   ///< warnings against wrong conclusions, and reasons for missing data
    bool hasB = false;
    QString step; ///< the word for run A's steps: "step", "layer"
    /// Keeps the report's data alive, so that the cache does not drop one part to read another.
    std::vector<std::shared_ptr<const void>> held;
};

/// Requests its data from \p data. Parts that are still being read are left out; TraceData's signals tell
/// when to call again. \p most: candidates for each step; a recorded target beyond these is added.
TokenReport token_report(TraceData& data, const Selection& selection, int most = 3);

} // namespace ponderscope
