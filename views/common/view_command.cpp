// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/view_command.h"

#include "views/common/format.h"

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

QString opened(const QString& name, const RunKey& key, const RunInfo& info) {
    // run() takes its argument for a name first, so use the number only for a run without a name.
    const QString run =
        info.name.empty() ? QString::number(info.id) : python_quoted(QString::fromStdString(info.name));
    return u"%1 = ps.open(%2).run(%3)\n"_s.arg(name, python_quoted(key.trace), run);
}

} // namespace

QString shell_quoted(const QString& word) {
    bool plain = !word.isEmpty();
    for (const QChar c : word) {
        plain = plain && (c.isLetterOrNumber() || u"-_=./:,+@%"_s.contains(c));
    }
    QString quoted = word;
    return plain ? word : u'\'' + quoted.replace(u'\'', u"'\\''"_s) + u'\'';
}

QString shell_command(const QStringList& arguments) {
    QString line = u"ponderscope"_s;
    for (const QString& argument : arguments) {
        line += u' ' + shell_quoted(argument);
    }
    return line;
}

QString python_quoted(const QString& text) {
    QString quoted = u"\""_s;
    for (const char32_t c : text.toUcs4()) {
        if (c == U'"' || c == U'\\') {
            quoted += u'\\';
            quoted += QChar(static_cast<char16_t>(c));
        } else if (QChar::isPrint(c)) {
            quoted += QString::fromUcs4(&c, 1);
        } else {
            quoted += u"\\U%1"_s.arg(static_cast<uint>(c), 8, 16, QLatin1Char('0'));
        }
    }
    return quoted + u'"';
}

QString run_name(const RunInfo& info) {
    // Readers take the text after the last '#' for the run, so the run's number replaces a name with '#'.
    const QString name = QString::fromStdString(info.name);
    return name.isEmpty() || name.contains(u'#') ? QString::number(info.id) : name;
}

QString run_reference(const RunKey& key, const RunInfo& info) {
    return key.trace + u'#' + run_name(info);
}

ViewCommand no_command(const QString& why) {
    return {ViewCommand::Kind::none, why};
}

ViewCommand no_command(const TraceData& data, const Selection& selection, const QString& otherwise) {
    const QString why = why_no_run(data, selection);
    return no_command(why.isEmpty() ? otherwise : why);
}

ViewCommand shell_view(const QList<QStringList>& lines) {
    QStringList typed;
    for (const QStringList& line : lines) {
        typed << shell_command(line);
    }
    return {ViewCommand::Kind::shell, typed.join(u'\n') + u'\n'};
}

QString why_no_run(const TraceData& data, const Selection& selection) {
    const RunKey a = selection.runA();
    if (data.run(a) == nullptr) {
        return u"Open a trace first. The command refers to a run."_s;
    }
    if (data.isLive(a.trace)) {
        return u"The generation is not recorded yet. Copy the command when the generation has ended."_s;
    }
    return {};
}

QString why_no_sequence(const TraceData& data, const Selection& selection) {
    const RunKey run = selection.runA();
    if (data.sequences(run).empty()) {
        return u"This run has no sequence yet."_s;
    }
    if (data.sequenceInfo(run, selection.sequence()) == nullptr) {
        return u"This run has no sequence %1."_s.arg(format_count(selection.sequence() + 1));
    }
    return data.isUnreadable(run, selection.sequence())
               ? u"This sequence cannot be read from the trace. Run “ponderscope check” to find the damage."_s
               : u"Reading the sequence…"_s;
}

QString run_a_reference(const TraceData& data, const Selection& selection) {
    const RunKey a = selection.runA();
    return run_reference(a, *data.run(a));
}

ViewCommand python_view(const TraceData& data, const Selection& selection, const QStringList& lines,
                        bool withB) {
    if (const QString why = why_no_run(data, selection); !why.isEmpty()) {
        return no_command(why);
    }
    const RunKey a = selection.runA();
    const RunKey b = selection.runB();
    QString text = u"import numpy as np\nimport ponderscope as ps\n\n"_s + opened(u"a"_s, a, *data.run(a));
    if (const RunInfo* other = data.run(b); withB && other != nullptr) {
        text += opened(u"b"_s, b, *other);
    }
    return {ViewCommand::Kind::python, text + lines.join(u'\n') + u'\n'};
}

} // namespace ponderscope
