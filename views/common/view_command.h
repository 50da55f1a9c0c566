// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/common/trace_data.h"

#include <QString>
#include <QStringList>

namespace ponderscope {

/// A command that reproduces a view or a dialog outside the window: lines for a POSIX shell or, where no verb
/// shows it, a piece of Python.
struct ViewCommand {
    enum class Kind {
        none,   ///< `text` says why
        shell,  ///< one or more command lines
        python, ///< a script that prints it
    };
    Kind kind = Kind::none;
    QString text;
};

/// The interface of panels that have such a command: every panel has it.
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
/// "ponderscope ARGUMENTS...", as one would type it.
QString shell_command(const QStringList& arguments);
/// A string of Python, quotes and all.
QString python_quoted(const QString& text);

/// TRACE#RUN, by the run's name, or by its number where the name would be read otherwise.
QString run_reference(const RunKey& key, const RunInfo& info);
/// The name or number by which a run of its trace is found.
QString run_name(const RunInfo& info);

ViewCommand no_command(const QString& why);
/// Each of \p lines without its "ponderscope".
ViewCommand shell_view(const QList<QStringList>& lines);
/// Run A as TRACE#RUN; needs one.
QString run_a_reference(const TraceData& data, const Selection& selection);
/// Why there is no command for run A (no run is shown, or it is not on disk yet); empty: there is a command.
QString why_no_run(const TraceData& data, const Selection& selection);
/// Why the chosen sequence of run A is not shown, where TraceData has not read it: there is none, it is damaged,
/// or it is being read.
QString why_no_sequence(const TraceData& data, const Selection& selection);
/// \p lines, after code that opens `a`, and `b` if \p withB and there is one; or why_no_run.
ViewCommand python_view(const TraceData& data, const Selection& selection, const QStringList& lines,
                        bool withB = false);

} // namespace ponderscope
