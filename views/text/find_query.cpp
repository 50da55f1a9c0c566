// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/find_query.h"

#include "views/common/format.h"
#include "views/common/translated.h"
#include "views/text/condition.h"
#include "views/text/find.h"

#include <QRegularExpression>

namespace ponderscope {
namespace {

constexpr qsizetype most_completions = 12;

std::optional<qint64> place_of(const QString& text) {
    static const QRegularExpression place(QStringLiteral("^\\s*token\\s+(\\d{1,15})\\s*$"),
                                          QRegularExpression::CaseInsensitiveOption);
    const QRegularExpressionMatch match = place.match(text);
    return match.hasMatch() ? std::optional(match.captured(1).toLongLong()) : std::nullopt;
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

QStringList completions(const QString& text, const SequenceData* shown) {
    QStringList lines;
    const auto offer = [&](const QString& before, const QString& begun, const QStringList& from) {
        for (const QString& one : from) {
            if (lines.size() < most_completions && one.size() > begun.size() &&
                one.startsWith(begun, Qt::CaseInsensitive) && !lines.contains(before + one)) {
                lines << before + one;
            }
        }
    };
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
    // The name of a quantity at the beginning or behind and / or.
    static const QRegularExpression last(QStringLiteral(R"re(^(|.*\b(?:and|or)\s+)(\w+)$)re"),
                                         QRegularExpression::CaseInsensitiveOption |
                                             QRegularExpression::UseUnicodePropertiesOption);
    if (const QRegularExpressionMatch match = last.match(text); match.hasMatch()) {
        QStringList names = Condition::names();
        for (qsizetype i = 0; shown != nullptr && i < static_cast<qsizetype>(shown->annotations.size()); ++i) {
            names << shown->annotations[static_cast<std::size_t>(i)].name;
        }
        offer(match.captured(1), match.captured(2), names);
    }
    return lines;
}

} // namespace ponderscope
