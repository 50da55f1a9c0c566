// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/text/quantity.h"

#include <QString>
#include <QStringList>

#include <optional>
#include <utility>
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

/// What a command can name, beside quantities.
struct CommandNames {
    QStringList annotations;
    QStringList stepSignals; ///< recorded by step: "colour nll@0-nll@last"
    std::vector<std::pair<QString, RunKey>> runs;
};
CommandNames command_names(const TraceData& data, const Selection& selection, const SequenceData* shown);

/// A line that is something to do and nothing to find: "token 100", "colour entropy", "bars gain", "colour
/// nll@0-nll@last", "run NAME", "against NAME"; and the name of a run alone, where it is nothing to find.
struct TextCommand {
    enum class Kind { token, colour, bars, derive, run, against };
    Kind kind;
    QString name; ///< of a quantity or annotation; the column to derive
    std::optional<Quantity> quantity;
    RunKey run;
    qint64 token = -1;
    QString words;           ///< what it does: "Colours the text by entropy"
    bool maybeFound = false; ///< a run's name alone: words to find, where the text has them
};
std::optional<TextCommand> text_command(const QString& text, const CommandNames& names);

/// Whole lines that \p text may become: its last word completed to a name that fits there. At most 12.
QStringList completions(const QString& text, const CommandNames& names, const SequenceData* shown);

} // namespace ponderscope
