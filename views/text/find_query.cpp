// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/find_query.h"

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/common/trace_contents.h"
#include "views/text/find.h"

#include <QRegularExpression>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

using namespace Qt::StringLiterals;

namespace ponderscope {

Found find_in(const SequenceData& data, const QString& query, Attribution attribution) {
    Found found;
    if (query.size() > 2 && query.startsWith(u'/') && query.endsWith(u'/')) {
        found.tokens = find_pattern(data, query.mid(1, query.size() - 2), found.problem);
    } else if (const auto condition = Condition::parse(query, data.annotations)) {
        found.tokens = find_where(data, *condition, attribution);
        found.alone = true;
    } else if (found.problem = Condition::problem(query, data.annotations); found.problem.isEmpty()) {
        found.tokens = find_tokens(data, query);
        if (found.tokens.empty()) { // "gain > 1" may have been meant as a condition
            found.hint = Condition::problem(query, data.annotations, true);
        }
    }
    return found;
}

namespace {

/// Values recorded in 32 bits are compared with the typed number rounded to 32 bits: 0.1 then finds 0.1.
double as_recorded(NumberKind number, double typed) {
    return (number == NumberKind::nats || number == NumberKind::probability) &&
                   std::abs(typed) <= static_cast<double>(std::numeric_limits<float>::max())
               ? static_cast<double>(static_cast<float>(typed))
               : typed;
}

} // namespace

std::optional<Condition::Comparison> Condition::compared(const QString& name, Order order,
                                                         const QString& value,
                                                         const std::vector<TokenAnnotation>& annotations) {
    const std::optional<double> typed = typed_number(value); // "nan" and "inf" are words
    const bool isNumber = typed.has_value();
    const double number = typed.value_or(0);
    std::optional<Comparison> made;
    for (const QuantityInfo& one : token_quantities) {
        if (name.compare(quantity_key(one.quantity), Qt::CaseInsensitive) == 0) {
            made = Comparison{Of::quantity, order, as_recorded(one.number, number), 0, one.quantity};
        }
    }
    if (name.compare(QLatin1String("id"), Qt::CaseInsensitive) == 0) {
        made = Comparison{Of::id, order, number};
    } else if (name.compare(QLatin1String("position"), Qt::CaseInsensitive) == 0) {
        made = Comparison{Of::position, order, number};
    }
    if (made) {
        return isNumber ? made : std::nullopt;
    }
    const auto own = std::find_if(annotations.begin(), annotations.end(), [&](const TokenAnnotation& one) {
        return one.name.compare(name, Qt::CaseInsensitive) == 0;
    });
    if (own == annotations.end()) {
        return std::nullopt;
    }
    made = Comparison{Of::annotation, order, number, static_cast<std::size_t>(own - annotations.begin())};
    if (!own->category) {
        return isNumber ? made : std::nullopt;
    }
    QString wanted = value;
    if (wanted.startsWith(u'"')) {
        wanted = wanted.mid(1, wanted.size() - 2).replace(u"\"\""_s, u"\""_s);
    }
    made->value = static_cast<double>(own->classes.indexOf(wanted));
    return order == Order::equal || order == Order::unequal ? made : std::nullopt;
}

std::optional<Condition> Condition::parse(const QString& text,
                                          const std::vector<TokenAnnotation>& annotations) {
    static const std::pair<const char*, Order> orders[] = {
        {"=", Order::equal},    {"==", Order::equal}, {"!=", Order::unequal}, {"<", Order::less},
        {"<=", Order::at_most}, {">", Order::more},   {">=", Order::at_least}};
    // Matches one comparison and the word that joins it to the next.
    static const QRegularExpression part(
        uR"re(\G\s*([a-z_][a-z0-9_]*)\s*(==|=|!=|<=|<|>=|>)\s*([-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[-+]?\d+)?|"(?:[^"]|"")*"|[^\W\d]\w*)\s*(and\b|or\b|$))re"_s,
        QRegularExpression::CaseInsensitiveOption | QRegularExpression::UseUnicodePropertiesOption);
    Condition made;
    made.any_of_all_.emplace_back();
    qsizetype at = 0;
    for (;;) {
        const QRegularExpressionMatch match = part.match(text, at, QRegularExpression::NormalMatch,
                                                         QRegularExpression::AnchorAtOffsetMatchOption);
        if (!match.hasMatch()) {
            return std::nullopt;
        }
        const auto* order = std::find_if(std::begin(orders), std::end(orders), [&](const auto& entry) {
            return match.captured(2) == QLatin1String(entry.first);
        });
        const std::optional<Comparison> one =
            order == std::end(orders)
                ? std::nullopt
                : compared(match.captured(1), order->second, match.captured(3), annotations);
        if (!one) {
            return std::nullopt;
        }
        made.any_of_all_.back().push_back(*one);
        const QString joint = match.captured(4).toLower();
        if (joint.isEmpty()) {
            return made;
        }
        if (joint == QLatin1String("or")) {
            made.any_of_all_.emplace_back();
        }
        at = match.capturedEnd();
    }
}

QStringList Condition::names() {
    QStringList names;
    for (const QuantityInfo& one : token_quantities) {
        names << quantity_key(one.quantity);
    }
    return names << u"id"_s << u"position"_s;
}

QString Condition::problem(const QString& text, const std::vector<TokenAnnotation>& annotations,
                           bool isCondition) {
    static const QRegularExpression opening(uR"re(^\s*([a-z_]\w*)\s*(==|=|!=|<=|<|>=|>)\s*)re"_s,
                                            QRegularExpression::CaseInsensitiveOption |
                                                QRegularExpression::UseUnicodePropertiesOption);
    static const QRegularExpression joint(uR"re((?:^|\s+)(?:and|or)\b)re"_s,
                                          QRegularExpression::CaseInsensitiveOption);
    if (parse(text, annotations)) {
        return {};
    }
    QStringList names = Condition::names();
    for (const TokenAnnotation& one : annotations) {
        names << one.name;
    }
    // Part by part, between and and or: the first that is none is the one.
    QString rest = text;
    for (bool first = true;; first = false) {
        const QRegularExpressionMatch begin = opening.match(rest);
        if (!begin.hasMatch()) {
            return first ? QString() : u"Expected another comparison after 'and' or 'or', e.g. nll > 4"_s;
        }
        const QString name = begin.captured(1);
        if (!names.contains(name, Qt::CaseInsensitive)) {
            return first && !isCondition
                       ? QString()
                       : u"unknown quantity “%1”; expected one of: %2"_s.arg(name, names.join(u", "_s));
        }
        const QString value = rest.mid(begin.capturedEnd());
        const QRegularExpressionMatch next = joint.match(value);
        const QString own = (next.hasMatch() ? value.left(next.capturedStart()) : value).trimmed();
        if (own.isEmpty()) {
            return u"'%1 %2' needs a number"_s.arg(name, begin.captured(2));
        }
        if (!parse(rest.left(begin.capturedEnd()) + own, annotations)) {
            const auto category =
                std::find_if(annotations.begin(), annotations.end(), [&](const TokenAnnotation& one) {
                    return one.category && one.name.compare(name, Qt::CaseInsensitive) == 0;
                });
            return category == annotations.end() ? u"“%1” is not a number"_s.arg(own)
                   : begin.captured(2) != u"=" && begin.captured(2) != u"==" && begin.captured(2) != u"!="
                       ? u"%1 has classes: compare with = or !="_s.arg(name)
                       : u"“%1” is not a class. Put class names with spaces in quotes"_s.arg(own);
        }
        rest = value.mid(next.capturedEnd());
    }
}

bool Condition::holds(const SequenceData& data, std::size_t token, Attribution attribution) const {
    const TokenColumns& tokens = data.tokens;
    const bool has_row = attribution == Attribution::predicting || token > 0;
    const std::size_t row = attribution == Attribution::predicting ? token : token - 1;
    const auto value_of = [&](const Comparison& one) {
        switch (one.of) {
        case Of::annotation: {
            const bool there = one.annotation < data.annotations.size() &&
                               token < data.annotations[one.annotation].values.size();
            return there ? data.annotations[one.annotation].values[token]
                         : std::numeric_limits<double>::quiet_NaN();
        }
        case Of::id:
            return static_cast<double>(tokens.id[token]);
        case Of::position:
            return static_cast<double>(token) + static_cast<double>(tokens.first);
        case Of::quantity:
            break;
        }
        return has_row ? quantity_of(one.quantity, tokens, row) : std::numeric_limits<double>::quiet_NaN();
    };
    const auto meets = [&](const Comparison& one) {
        const double value = value_of(one);
        switch (one.order) {
        case Order::equal:
            return value == one.value;
        case Order::unequal:
            return !std::isnan(value) && value != one.value;
        case Order::less:
            return value < one.value;
        case Order::at_most:
            return value <= one.value;
        case Order::more:
            return value > one.value;
        case Order::at_least:
            return value >= one.value;
        }
        return false;
    };
    return std::any_of(any_of_all_.begin(), any_of_all_.end(), [&](const std::vector<Comparison>& all) {
        return std::all_of(all.begin(), all.end(), meets);
    });
}

std::vector<qint64> find_where(const SequenceData& data, const Condition& condition, Attribution attribution,
                               std::size_t limit) {
    std::vector<qint64> hits;
    for (std::size_t token = 0; token < data.tokens.size() && hits.size() < limit; ++token) {
        if (condition.holds(data, token, attribution)) {
            hits.push_back(static_cast<qint64>(token));
        }
    }
    return hits;
}

namespace {

/// Places that are kept; more are no selection.
constexpr qint64 most_found = 2'000'000;

} // namespace

qint64 FoundInRun::size() const {
    return std::accumulate(counts.begin(), counts.end(), qint64{0},
                           [](qint64 sum, const auto& one) { return sum + one.second; });
}

FoundInRun find_in_run(const RunKey& run, const QString& query, Attribution attribution,
                       std::atomic<qint64>& done, const std::stop_token& stop) {
    const TraceReader reader = TraceReader::open(path_of(run.trace));
    const std::optional<AnnotationReader> annotations = open_annotations(reader);
    std::atomic<bool> stopped = false;
    const std::stop_callback stops(stop, [&stopped] { stopped = true; });
    FoundInRun found;
    for (const SequenceInfo& sequence : reader.sequences(run.run)) {
        const auto block = read_sequence(reader, annotations, run, sequence.number, nullptr, stopped);
        if (!block) {
            throw Cancelled();
        }
        const Found here = find_in(*block, query, attribution);
        if (query.startsWith(u'/') && !here.problem.isEmpty()) { // what is not searched is not without hits
            throw InputError(
                u"sequence %1: %2"_s.arg(QString::number(sequence.number + 1), here.problem).toStdString());
        }
        found.more = found.size() + static_cast<qint64>(here.tokens.size()) > most_found;
        if (found.more) {
            break;
        }
        for (const qint64 token : here.tokens) {
            ++found.counts[sequence.number];
            if (const qint64 row = attribution == Attribution::predicted ? token - 1 : token; row >= 0) {
                found.rows[sequence.number].push_back(row);
            }
        }
        ++done;
    }
    return found;
}

} // namespace ponderscope
