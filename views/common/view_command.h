// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/common/trace_data.h"

#include <QString>
#include <QStringList>

namespace ponderscope {

/// Lines for a POSIX shell that reproduce a view or a dialog, or Python code if no verb shows this view.
struct ViewCommand {
    enum class Kind {
        none,   ///< `text` says why there is no command
        shell,  ///< one or more command lines
        python, ///< a script that prints the view
    };
    Kind kind = Kind::none;
    QString text;
};

/// The interface of panels. Every panel has a command, or a reason why there is no command.
class ShowsCommand {
public:
    ShowsCommand() = default;
    virtual ~ShowsCommand() = default;
    ShowsCommand(const ShowsCommand&) = delete;
    ShowsCommand& operator=(const ShowsCommand&) = delete;
    [[nodiscard]] virtual ViewCommand viewCommand() const = 0;
};

/// Quotes \p word for a POSIX shell.
QString shell_quoted(const QString& word);
/// "ponderscope ARGUMENTS...", quoted for a shell.
QString shell_command(const QStringList& arguments);
/// A Python string literal.
QString python_quoted(const QString& text);

/// TRACE#RUN with the run's name, or its number if the name would be ambiguous.
QString run_reference(const RunKey& key, const RunInfo& info);
/// The name or number that identifies a run within its trace.
QString run_name(const RunInfo& info);

ViewCommand no_command(const QString& why);
/// No command. The reason is why_no_run(), or \p otherwise if why_no_run() is empty.
ViewCommand no_command(const TraceData& data, const Selection& selection, const QString& otherwise);
/// \p lines: arguments without "ponderscope".
ViewCommand shell_view(const QList<QStringList>& lines);
/// Run A as TRACE#RUN. Call it only while a run A is shown.
QString run_a_reference(const TraceData& data, const Selection& selection);
/// Why there is no command for run A (no run is shown, or it is not on disk yet); empty: there is a command.
QString why_no_run(const TraceData& data, const Selection& selection);
/// Why run A has no data of the chosen sequence: the sequence is missing, damaged, or being read.
QString why_no_sequence(const TraceData& data, const Selection& selection);
/// Python code that opens run A as `a`, then \p lines. With \p withB, also opens run B (if any) as `b`. If
/// why_no_run() has a reason: no command, with this reason.
ViewCommand python_view(const TraceData& data, const Selection& selection, const QStringList& lines,
                        bool withB = false);

} // namespace ponderscope
