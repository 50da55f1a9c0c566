// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/find_query.h"

#include "core/base/error.h"
#include "core/trace/step_columns.h"
#include "views/common/format.h"
#include "views/common/translated.h"
#include "views/text/condition.h"
#include "views/text/find.h"

#include <QRegularExpression>

#include <algorithm>

namespace ponderscope {
namespace {

constexpr qsizetype most_completions = 12;

std::optional<qint64> place_of(const QString& text) {
    static const QRegularExpression place(QStringLiteral("^\\s*token\\s+(\\d{1,15})\\s*$"),
                                          QRegularExpression::CaseInsensitiveOption);
    const QRegularExpressionMatch match = place.match(text);
    return match.hasMatch() ? std::optional(match.captured(1).toLongLong()) : std::nullopt;
}

const std::pair<QString, RunKey>* run_called(const CommandNames& names, const QString& name) {
    const auto known = std::find_if(names.runs.begin(), names.runs.end(), [&](const auto& run) {
        return run.first.compare(name, Qt::CaseInsensitive) == 0;
    });
    return known == names.runs.end() ? nullptr : &*known;
}

QStringList quantity_keys() {
    QStringList keys;
    for (const Quantity quantity : all_quantities) {
        keys << quantity_key(quantity);
    }
    return keys;
}

} // namespace

Found find_in(const SequenceData& data, const QString& query, Attribution attribution) {
    Found found;
    if (const auto token = place_of(query)) {
        const auto count = static_cast<qint64>(data.tokens.size());
        if (*token < count) {
            found.tokens = {*token};
        } else {
            found.problem = tr("the last token is %1").arg(format_count(count - 1));
        }
    } else if (query.size() > 2 && query.startsWith(u'/') && query.endsWith(u'/')) {
        found.tokens = find_pattern(data, query.mid(1, query.size() - 2), found.problem);
    } else if (const auto condition = Condition::parse(query, data.annotations)) {
        found.tokens = find_where(data, *condition, attribution);
        found.alone = true;
    } else if (found.problem = Condition::problem(query, data.annotations); found.problem.isEmpty()) {
        found.alone = query.startsWith(u'#');
        found.tokens = find_tokens(data, query);
        if (found.tokens.empty()) { // "gain > 1" may have been meant as a condition
            found.hint = Condition::problem(query, data.annotations, true);
        }
    }
    return found;
}

CommandNames command_names(const TraceData& data, const Selection& selection, const SequenceData* shown) {
    CommandNames names;
    if (shown != nullptr) {
        for (const TokenAnnotation& one : shown->annotations) {
            names.annotations << one.name;
        }
    }
    for (const SignalInfo& one : data.signalsOf(selection.runA())) {
        if (one.axes == std::vector<std::string>{"token", "step"}) {
            names.stepSignals << QString::fromStdString(one.name);
        }
    }
    const QStringList traces = data.traces();
    for (const QString& trace : traces) {
        for (const RunInfo& run : data.runs(trace)) {
            names.runs.emplace_back(QString::fromStdString(run.name), RunKey{trace, run.id});
        }
    }
    return names;
}

std::optional<TextCommand> text_command(const QString& text, const CommandNames& names) {
    const QString line = text.simplified();
    if (const auto token = place_of(line)) {
        return TextCommand{
            TextCommand::Kind::token, {}, {}, {}, *token, tr("Goes to token %1").arg(format_count(*token))};
    }
    const QString verb = line.section(u' ', 0, 0).toLower();
    const QString name = line.section(u' ', 1).trimmed();
    using Kind = TextCommand::Kind;
    if (verb == u"colour" || verb == u"color" || verb == u"bars") {
        const bool bars = verb == u"bars";
        const auto quantity = quantity_called(name);
        const auto annotation =
            std::find_if(names.annotations.begin(), names.annotations.end(),
                         [&](const QString& one) { return one.compare(name, Qt::CaseInsensitive) == 0; });
        if (quantity || annotation != names.annotations.end()) {
            const QString of = quantity ? quantity_name(*quantity) : *annotation;
            return TextCommand{bars ? Kind::bars : Kind::colour,
                               of,
                               quantity,
                               {},
                               -1,
                               bars ? tr("Shows %1 as bars").arg(of) : tr("Colours the text by %1").arg(of)};
        }
        if (!bars && name.contains(u'@')) {
            try {
                const StepColumn column = StepColumn::parse(name.toStdString());
                if (names.stepSignals.contains(QString::fromStdString(column.of.signal))) {
                    return TextCommand{Kind::derive, name,
                                       {},           {},
                                       -1,           tr("Works out %1 and colours the text by it").arg(name)};
                }
            } catch (const InputError&) {
                return std::nullopt; // still being typed
            }
        }
        return std::nullopt;
    }
    if (verb == u"run" || verb == u"against") {
        if (const auto* run = run_called(names, name)) {
            return TextCommand{verb == u"run" ? Kind::run : Kind::against,
                               run->first,
                               {},
                               run->second,
                               -1,
                               verb == u"run" ? tr("Shows %1 as A").arg(run->first)
                                              : tr("Compares with %1 as B").arg(run->first)};
        }
        return std::nullopt;
    }
    if (const auto* run = run_called(names, line)) {
        return TextCommand{Kind::run, run->first, {}, run->second, -1, tr("Shows %1 as A").arg(run->first),
                           true};
    }
    return std::nullopt;
}

QStringList completions(const QString& text, const CommandNames& names, const SequenceData* shown) {
    QStringList lines;
    const auto offer = [&](const QString& before, const QString& begun, const QStringList& from) {
        for (const QString& one : from) {
            if (lines.size() < most_completions && one.size() > begun.size() &&
                one.startsWith(begun, Qt::CaseInsensitive) && !lines.contains(before + one)) {
                lines << before + one;
            }
        }
    };
    QStringList runs;
    for (const auto& [name, key] : names.runs) {
        runs << name;
    }
    // What stands behind a command is a name, whole.
    static const QRegularExpression command(QStringLiteral("^\\s*(colou?r|bars|run|against)\\s+"),
                                            QRegularExpression::CaseInsensitiveOption);
    if (const QRegularExpressionMatch match = command.match(text); match.hasMatch()) {
        const QString verb = match.captured(1).toLower();
        const QString begun = text.mid(match.capturedEnd());
        if (verb == u"run" || verb == u"against") {
            offer(match.captured(), begun, runs);
            return lines;
        }
        offer(match.captured(), begun, quantity_keys() + names.annotations);
        if (verb != u"bars") {
            QStringList columns;
            for (const QString& signal : names.stepSignals) {
                columns << signal + QStringLiteral("@last")
                        << signal + QStringLiteral("@0-") + signal + QStringLiteral("@last");
            }
            offer(match.captured(), begun, columns);
        }
        return lines;
    }
    // A class behind the name of a category: label = h…
    static const QRegularExpression comparison(QStringLiteral(R"re(^(.*\b(\w+)\s*(?:==?|!=)\s*)"?(\w*)$)re"),
                                               QRegularExpression::UseUnicodePropertiesOption);
    if (const QRegularExpressionMatch match = comparison.match(text); match.hasMatch() && shown != nullptr) {
        for (const TokenAnnotation& one : shown->annotations) {
            if (one.category && one.name.compare(match.captured(2), Qt::CaseInsensitive) == 0) {
                static const QRegularExpression word(QStringLiteral("^\\w+$"),
                                                     QRegularExpression::UseUnicodePropertiesOption);
                for (const QString& label : one.classes) {
                    if (lines.size() < most_completions &&
                        label.startsWith(match.captured(3), Qt::CaseInsensitive)) {
                        QString quoted = label;
                        lines << match.captured(1) +
                                     (word.match(label).hasMatch()
                                          ? label
                                          : u'"' + quoted.replace(u'"', QStringLiteral("\"\"")) + u'"');
                    }
                }
            }
        }
        return lines;
    }
    // The name of a quantity at the beginning or behind and / or; commands and runs at the beginning alone.
    static const QRegularExpression last(QStringLiteral(R"re(^(|.*\b(?:and|or)\s+)(\w+)$)re"),
                                         QRegularExpression::CaseInsensitiveOption |
                                             QRegularExpression::UseUnicodePropertiesOption);
    if (const QRegularExpressionMatch match = last.match(text); match.hasMatch()) {
        const QString begun = match.captured(2);
        offer(match.captured(1), begun, Condition::names() + names.annotations);
        if (match.captured(1).isEmpty()) {
            offer({}, begun,
                  {QStringLiteral("colour "), QStringLiteral("bars "), QStringLiteral("token "),
                   QStringLiteral("run "), QStringLiteral("against ")});
        }
    }
    if (!text.isEmpty()) {
        offer({}, text, runs);
    }
    return lines;
}

} // namespace ponderscope
