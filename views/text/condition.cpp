// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/condition.h"

#include <QRegularExpression>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {

std::optional<Condition> Condition::parse(const QString& text) {
    static const std::pair<const char*, Name> names[] = {
        {"nll", Name::nll},     {"entropy", Name::entropy},  {"rank", Name::rank},
        {"steps", Name::steps}, {"flops", Name::flops},      {"probability", Name::probability},
        {"id", Name::id},       {"position", Name::position}};
    static const std::pair<const char*, Order> orders[] = {
        {"=", Order::equal},    {"==", Order::equal}, {"!=", Order::unequal}, {"<", Order::less},
        {"<=", Order::at_most}, {">", Order::more},   {">=", Order::at_least}};
    // One comparison and the word that joins it to the next.
    static const QRegularExpression part(
        QStringLiteral(
            R"(\G\s*([a-z]+)\s*(==|=|!=|<=|<|>=|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*(and\b|or\b|$))"),
        QRegularExpression::CaseInsensitiveOption);
    Condition made;
    made.any_of_all_.emplace_back();
    qsizetype at = 0;
    for (;;) {
        const QRegularExpressionMatch match = part.match(text, at, QRegularExpression::NormalMatch,
                                                         QRegularExpression::AnchorAtOffsetMatchOption);
        if (!match.hasMatch()) {
            return std::nullopt;
        }
        const auto is = [](const QString& word) {
            return [word](const auto& entry) { return word == QLatin1String(entry.first); };
        };
        const auto* name = std::find_if(std::begin(names), std::end(names), is(match.captured(1).toLower()));
        const auto* order = std::find_if(std::begin(orders), std::end(orders), is(match.captured(2)));
        if (name == std::end(names) || order == std::end(orders)) {
            return std::nullopt;
        }
        made.any_of_all_.back().push_back({name->second, order->second, match.captured(3).toDouble()});
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

bool Condition::holds(const TokenColumns& tokens, std::size_t token, Attribution attribution) const {
    const bool has_row = attribution == Attribution::predicting || token > 0;
    const std::size_t row = attribution == Attribution::predicting ? token : token - 1;
    const auto value_of = [&](Name name) {
        switch (name) {
        case Name::id:
            return static_cast<double>(tokens.id[token]);
        case Name::position:
            return static_cast<double>(token) + static_cast<double>(tokens.first);
        default:
            break;
        }
        if (!has_row) {
            return std::numeric_limits<double>::quiet_NaN();
        }
        const Quantity quantity = name == Name::nll           ? Quantity::nll
                                  : name == Name::entropy     ? Quantity::entropy
                                  : name == Name::rank        ? Quantity::rank
                                  : name == Name::steps       ? Quantity::steps
                                  : name == Name::probability ? Quantity::maxProbability
                                                              : Quantity::flops;
        return quantity_of(quantity, tokens, row);
    };
    const auto meets = [&](const Comparison& one) {
        const double value = value_of(one.name);
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
        if (condition.holds(data.tokens, token, attribution)) {
            hits.push_back(static_cast<qint64>(token));
        }
    }
    return hits;
}

} // namespace ponderscope
