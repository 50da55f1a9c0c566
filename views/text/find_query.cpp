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
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

using namespace Qt::StringLiterals;

namespace ponderscope {

Found find_in(const SequenceData& data, const QString& query, Attribution attribution) {
    Found found;
    if (query.size() > 2 && query.startsWith(u'/') && query.endsWith(u'/')) {
        found.tokens = find_pattern(data, query.mid(1, query.size() - 2), found.problem);
    } else if (const auto condition = Condition::parse(query, data.annotations, &found.problem)) {
        found.tokens = find_where(data, *condition, attribution);
        found.alone = true;
    } else if (found.problem.isEmpty()) {
        found.tokens = find_tokens(data, query);
        if (found.tokens.empty()) { // the text may be a condition with an unknown name: "gain > 1"
            (void)Condition::parse(query, data.annotations, &found.hint, true);
        }
    }
    return found;
}

namespace {

/// Rounds a typed number to 32 bits for values that were recorded in 32 bits, so that 0.1 equals 0.1.
double as_recorded(NumberKind number, double typed) {
    return (number == NumberKind::nats || number == NumberKind::probability) &&
                   std::abs(typed) <= static_cast<double>(std::numeric_limits<float>::max())
               ? static_cast<double>(static_cast<float>(typed))
               : typed;
}

bool is_same_name(const QString& a, const QString& b) {
    return a.compare(b, Qt::CaseInsensitive) == 0;
}

auto annotation_called(const QString& name, const std::vector<TokenAnnotation>& annotations) {
    return std::ranges::find_if(annotations,
                                [&](const TokenAnnotation& one) { return is_same_name(one.name, name); });
}

/// Whether the comparison is possible for classes, which have no order.
bool compares_classes(const QString& sign) {
    return sign == u"=" || sign == u"==" || sign == u"!=";
}

/// The error in \p rest, which does not begin with a valid comparison. \p first: \p rest is the whole text.
QString problem_of(const QString& rest, bool first, const std::vector<TokenAnnotation>& annotations,
                   bool isCondition) {
    static const QRegularExpression opening(uR"re(^\s*([a-z_]\w*)\s*(==|=|!=|<=|<|>=|>)\s*)re"_s,
                                            QRegularExpression::CaseInsensitiveOption |
                                                QRegularExpression::UseUnicodePropertiesOption);
    static const QRegularExpression joint(uR"re((?:^|\s+)(?:and|or)\b)re"_s,
                                          QRegularExpression::CaseInsensitiveOption);
    const QRegularExpressionMatch begin = opening.match(rest);
    if (!begin.hasMatch()) {
        return first ? QString() : u"Expected another comparison after 'and' or 'or', e.g. nll > 4"_s;
    }
    QStringList names;
    for (const QuantityInfo& one : token_quantities) {
        names << quantity_key(one.quantity);
    }
    names << u"id"_s << u"position"_s;
    for (const TokenAnnotation& one : annotations) {
        names << one.name;
    }
    const QString name = begin.captured(1);
    const QString sign = begin.captured(2);
    if (!names.contains(name, Qt::CaseInsensitive)) {
        return first && !isCondition
                   ? QString()
                   : u"unknown quantity “%1”; expected one of: %2"_s.arg(name, names.join(u", "_s));
    }
    const QString value = rest.mid(begin.capturedEnd());
    const QString own = value.left(joint.match(value).capturedStart()).trimmed();
    if (own.isEmpty()) {
        return u"'%1 %2' needs a number"_s.arg(name, sign);
    }
    const auto annotation = annotation_called(name, annotations);
    return annotation == annotations.end() || !annotation->category ? u"“%1” is not a number"_s.arg(own)
           : !compares_classes(sign)
               ? u"%1 has classes: compare with = or !="_s.arg(name)
               : u"“%1” is not a class. Put class names with spaces in quotes"_s.arg(own);
}

} // namespace

std::optional<Condition::Comparison> Condition::compared(const QString& name, const QString& sign,
                                                         const QString& value,
                                                         const std::vector<TokenAnnotation>& annotations) {
    static const std::pair<const char*, Test> tests[] = {
        {"=", [](double recorded, double typed) { return recorded == typed; }},
        {"==", [](double recorded, double typed) { return recorded == typed; }},
        {"!=", [](double recorded, double typed) { return !std::isnan(recorded) && recorded != typed; }},
        {"<", [](double recorded, double typed) { return recorded < typed; }},
        {"<=", [](double recorded, double typed) { return recorded <= typed; }},
        {">", [](double recorded, double typed) { return recorded > typed; }},
        {">=", [](double recorded, double typed) { return recorded >= typed; }}};
    const Test test = std::find_if(std::begin(tests), std::end(tests), [&](const auto& entry) {
                          return sign == QLatin1String(entry.first);
                      })->second;
    const std::optional<double> typed = typed_number(value); // no value for "nan" and "inf"
    const double number = typed.value_or(0);
    std::optional<Comparison> made;
    for (const QuantityInfo& one : token_quantities) {
        if (is_same_name(name, quantity_key(one.quantity))) {
            made = Comparison{Of::quantity, test, as_recorded(one.number, number), 0, one.quantity};
        }
    }
    if (is_same_name(name, u"id"_s)) {
        made = Comparison{Of::id, test, number};
    } else if (is_same_name(name, u"position"_s)) {
        made = Comparison{Of::position, test, number};
    }
    const auto own = annotation_called(name, annotations);
    if (!made && own != annotations.end()) {
        made = Comparison{Of::annotation, test, number, static_cast<std::size_t>(own - annotations.begin())};
        if (own->category) {
            QString wanted = value;
            if (wanted.startsWith(u'"')) {
                wanted = wanted.mid(1, wanted.size() - 2).replace(u"\"\""_s, u"\""_s);
            }
            made->value = static_cast<double>(own->classes.indexOf(wanted));
            return compares_classes(sign) ? made : std::nullopt;
        }
    }
    return typed ? made : std::nullopt;
}

std::optional<Condition> Condition::parse(const QString& text,
                                          const std::vector<TokenAnnotation>& annotations, QString* problem,
                                          bool isCondition) {
    // Matches one comparison and the word that joins it to the next.
    static const QRegularExpression part(
        uR"re(\G\s*([a-z_][a-z0-9_]*)\s*(==|=|!=|<=|<|>=|>)\s*([-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[-+]?\d+)?|"(?:[^"]|"")*"|[^\W\d]\w*)\s*(and\b|or\b|$))re"_s,
        QRegularExpression::CaseInsensitiveOption | QRegularExpression::UseUnicodePropertiesOption);
    Condition made;
    made.any_of_all_.emplace_back();
    for (qsizetype at = 0;;) {
        const QRegularExpressionMatch match = part.match(text, at, QRegularExpression::NormalMatch,
                                                         QRegularExpression::AnchorAtOffsetMatchOption);
        const std::optional<Comparison> one =
            match.hasMatch() ? compared(match.captured(1), match.captured(2), match.captured(3), annotations)
                             : std::nullopt;
        if (!one) {
            if (problem != nullptr) {
                *problem = problem_of(text.mid(at), at == 0, annotations, isCondition);
            }
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
    const auto meets = [&](const Comparison& one) { return one.test(value_of(one), one.value); };
    return std::ranges::any_of(
        any_of_all_, [&](const std::vector<Comparison>& all) { return std::ranges::all_of(all, meets); });
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

qint64 FoundInRun::size() const {
    return std::accumulate(counts.begin(), counts.end(), qint64{0},
                           [](qint64 sum, const auto& one) { return sum + one.second; });
}

FoundInRun find_in_run(const RunKey& run, const QString& query, Attribution attribution,
                       const std::function<void(qint64)>& tell, const std::stop_token& stop) {
    constexpr qint64 most_found = 2'000'000; // largest number of stored hits
    const TraceReader reader = TraceReader::open(path_of(run.trace));
    const std::optional<AnnotationReader> annotations = open_annotations(reader);
    std::atomic<bool> stopped = false;
    const std::stop_callback stops(stop, [&stopped] { stopped = true; });
    FoundInRun found;
    const std::vector<SequenceInfo> sequences = reader.sequences(run.run);
    for (const SequenceInfo& sequence : sequences) {
        if (const auto done = &sequence - sequences.data(); done % (std::ssize(sequences) / 100 + 1) == 0) {
            tell(done);
        }
        const auto block = read_sequence(reader, annotations, run, sequence.number, nullptr, stopped);
        if (!block) {
            throw Cancelled();
        }
        const Found here = find_in(*block, query, attribution);
        if (query.startsWith(u'/') && !here.problem.isEmpty()) { // the sequence was not searched
            throw InputError(
                ErrorId::usage_value,
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
    }
    return found;
}

} // namespace ponderscope
