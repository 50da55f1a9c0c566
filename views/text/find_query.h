// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/text/quantity.h"

#include <QString>
#include <QStringList>

#include <vector>

namespace ponderscope {

/// What a query finds in a sequence: text, "#id", a /pattern/, "token 100" or a condition.
struct Found {
    std::vector<qint64> tokens; ///< ascending
    bool alone = false;         ///< what is asked of single tokens is a filter
    QString problem;            ///< why there can be none; empty when all is well
    QString hint;               ///< why a text was not found that looks like a condition; else empty
};
Found find_in(const SequenceData& data, const QString& query, Attribution attribution);

/// Whole lines that \p text may become: its last word completed to the name of a quantity, an annotation or a
/// class of \p shown that fits there. At most 12.
QStringList completions(const QString& text, const SequenceData* shown);

} // namespace ponderscope
