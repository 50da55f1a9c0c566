// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/common/trace_data.h"

#include <QString>

#include <vector>

namespace ponderscope {

/// All texts and numbers of the inspector for one token. Rebuilt for every token under the cursor, so it
/// reads only one row of each signal.
struct TokenReport {
    struct Row {
        QString label;
        QString a; ///< "–": no value
        QString b; ///< empty without a run B
    };
    struct Candidate {
        QString text;
        double probability = 0;
        int place = 1;       ///< 1: the most probable
        bool target = false; ///< the token that followed in the text
    };
    struct Step {
        int step = 0;
        std::vector<Candidate> candidates; ///< the most probable first
        bool selected = false;
    };
    /// A signal by step. NaN: no value; steps that did not run are left out at the end.
    struct Curve {
        QString name; ///< SignalInfo::name
        QString title;
        QString unit;
        std::vector<double> a;
        std::vector<double> b; ///< one value: the run has a single step, shown as a level
    };

    qint64 token = -1; ///< -1: empty, and the hint says what to do
    QString hint;
    QString headline; ///< the token's text without the blanks before it
    QString subtitle; ///< "id 412 · bytes 33–42 · sequence 2"
    std::vector<Row> rows;
    std::vector<Step> candidates; ///< of run A
    std::vector<Curve> curves;    ///< NLL first
    std::vector<Curve> gates;     ///< gates and halting masses, to be drawn as bars
    std::vector<QString> notes;   ///< wrong conclusions to avoid, and missing data with the reason
    bool hasB = false;
    QString step; ///< name of run A's steps: "step", "layer"
    /// Data that the report uses. While the report is shown, the cache does not drop one part to read
    /// another.
    std::vector<std::shared_ptr<const void>> held;
};

/// Asks \p data for what it needs; parts that are still being read are left out, and TraceData's signals say
/// when to ask again. \p most: candidates a step; the true token
/// is added, with its rank where it is none of those recorded.
TokenReport token_report(TraceData& data, const Selection& selection, int most = 3);

} // namespace ponderscope
