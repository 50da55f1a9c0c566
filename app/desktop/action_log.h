// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

namespace ponderscope {

/// What was done in a window, as a script for a POSIX shell: every command that the window ran, or that makes
/// what it showed, one after the other; what no verb does stands there as a comment. GUI thread only.
class ActionLog {
public:
    /// \p line: one or more lines of a shell, as they are. The same again, straight after, is one.
    void command(const QString& line);
    /// A script of Python, run by the python3 of whoever runs the script.
    void python(const QString& script);
    /// Arguments of ponderscope as a process was given them. Files among them that lie in the folder for
    /// temporary ones are written by the script, up to a size; a larger one makes the command a comment.
    void ran(const QStringList& arguments);
    /// What happened that is no command.
    void remark(const QString& sentence);

    [[nodiscard]] bool isEmpty() const { return parts_.isEmpty(); }
    [[nodiscard]] int commands() const { return commands_; }
    /// \p scratch: the trace of runs that nobody asked to keep; in the script it is scratch.ponder, in the
    /// folder in which that runs.
    [[nodiscard]] QString script(const QString& scratch) const;

private:
    QStringList parts_;
    int commands_ = 0;
};

/// Writes \p script to \p file and makes it executable. What could not be done, or empty.
QString save_script(const QString& script, const QString& file);

} // namespace ponderscope
