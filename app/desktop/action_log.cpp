// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/action_log.h"

#include "app/desktop/record_command.h"
#include "views/common/translated.h"
#include "views/common/view_command.h"

#include <QDir>
#include <QFileInfo>
#include <QSaveFile>

namespace ponderscope {

namespace {

constexpr qint64 largest_written = 1 << 20; ///< bytes of a temporary file that the script brings along

/// A line that nothing in \p text is.
QString end_mark(const QString& text) {
    QString mark = QStringLiteral("END");
    while (text.contains(mark)) {
        mark += u'_';
    }
    return mark;
}

QString here_document(const QString& head, QString text) {
    const QString mark = end_mark(text);
    if (!text.endsWith(u'\n')) {
        text += u'\n';
    }
    return QStringLiteral("%1 <<'%2'\n%3%2").arg(head, mark, text);
}

} // namespace

void ActionLog::command(const QString& line) {
    if (parts_.isEmpty() || parts_.constLast() != line) {
        parts_ << line;
        ++commands_;
    }
}

void ActionLog::python(const QString& script) {
    command(here_document(QStringLiteral("python3 -"), script));
}

void ActionLog::ran(const QStringList& arguments) {
    QStringList typed = as_typed(arguments);
    const QString temporary = QDir(QDir::tempPath()).absolutePath() + u'/';
    for (QString& argument : typed) {
        const QString name = argument.startsWith(u'-') ? argument.section(u'=', 0, 0) + u'=' : QString();
        const QFileInfo file(argument.mid(name.size()));
        if (file.suffix() != u"json" || !file.absoluteFilePath().startsWith(temporary)) {
            continue; // tokens of a rerun and states that were put in
        }
        QFile in(file.filePath());
        if (file.size() > largest_written || !in.open(QIODevice::ReadOnly)) {
            remark(tr("needs %1, which was a temporary file: %2").arg(file.fileName(), shell_command(typed)));
            return;
        }
        argument = name + file.fileName();
        command(here_document(QStringLiteral("cat >") + shell_quoted(file.fileName()),
                              QString::fromUtf8(in.readAll())));
    }
    command(shell_command(typed));
}

void ActionLog::remark(const QString& sentence) {
    parts_ << QStringLiteral("# ") + QString(sentence).replace(u'\n', QStringLiteral("\n# "));
}

QString ActionLog::script(const QString& scratch) const {
    QString text = parts_.join(u'\n') + u'\n';
    text.replace(scratch, QStringLiteral("scratch.ponder"));
    return QStringLiteral("#!/bin/sh\n# %1\nset -eu\n\n")
               .arg(
                   tr("What was done in the window of Ponderscope. Needs ponderscope on PATH; runs are added "
                      "to traces that are there.")) +
           text;
}

QString save_script(const QString& script, const QString& file) {
    QSaveFile out(file);
    const QByteArray bytes = script.toUtf8();
    if (!out.open(QIODevice::WriteOnly) || out.write(bytes) != bytes.size() || !out.commit()) {
        return tr("%1 could not be written: %2").arg(file, out.errorString());
    }
    QFile::setPermissions(file, QFile::permissions(file) | QFile::ExeOwner | QFile::ExeUser);
    return {};
}

} // namespace ponderscope
