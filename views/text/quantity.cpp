// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/quantity.h"

#include "core/stats/significance.h"
#include "views/common/theme.h"

#include <QLocale>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Half of the 95 % interval of a mean, as if the tokens were independent. 0 for fewer than two tokens.
double interval_of_mean(const std::vector<float>& values) {
    Moments moments;
    for (const float value : values) {
        if (std::isfinite(value)) {
            moments.add(static_cast<double>(value));
        }
    }
    return moments.count < 2 ? 0 : 1.96 * std::sqrt(moments.variance() / static_cast<double>(moments.count));
}

QString words(std::string_view text) {
    return QString::fromUtf8(text);
}

template <typename Value>
std::vector<float> by_token(std::size_t count, Attribution attribution, Value value) {
    std::vector<float> values;
    values.reserve(count);
    const std::size_t shift = attribution == Attribution::predicted ? 1 : 0;
    values.resize(std::min(shift, count), nan);
    for (std::size_t row = 0; row + shift < count; ++row) {
        values.push_back(static_cast<float>(value(row)));
    }
    return values;
}

} // namespace

QString quantity_key(Quantity quantity) {
    return words(info_of(quantity).key);
}

QString quantity_name(Quantity quantity) {
    return words(info_of(quantity).name);
}

std::optional<Quantity> quantity_called(const QString& name) {
    for (const QuantityInfo& one : token_quantities) {
        if (name.compare(words(one.key), Qt::CaseInsensitive) == 0 ||
            name.compare(words(one.name), Qt::CaseInsensitive) == 0) {
            return one.quantity;
        }
    }
    return std::nullopt;
}

QString quantity_meaning(Quantity quantity, Attribution attribution) {
    const QuantityInfo& info = info_of(quantity);
    return words(attribution == Attribution::predicted ? info.meaning : info.meaning_next);
}

ValueKind kind_of(Quantity quantity, qint64 maxSteps) {
    const NumberKind number = info_of(quantity).number;
    return {number, false,
            number == NumberKind::count ? static_cast<double>(std::max<qint64>(maxSteps, 1)) : 0};
}

QString format_quantity(Quantity quantity, double value) {
    return look_of(kind_of(quantity), {}).text(value);
}

double quantity_of(Quantity quantity, const TokenColumns& tokens, std::size_t row) {
    return row < tokens.size() ? info_of(quantity).value(tokens, row)
                               : std::numeric_limits<double>::quiet_NaN();
}

QString TokenValues::unit() const {
    return annotation.isEmpty() ? words(info_of(quantity).unit) : QString();
}

QString TokenValues::name() const {
    return annotation.isEmpty() ? quantity_name(quantity) : annotation;
}

QString TokenValues::meaning() const {
    if (!notice.isEmpty()) {
        return notice;
    }
    if (!replay.isEmpty()) {
        return u"replay of %1: steps"_s.arg(replay);
    }
    if (!annotation.isEmpty()) {
        return classes.isEmpty() ? u"%1, an annotation of the token"_s.arg(annotation)
                                 : u"%1: %2"_s.arg(annotation, classes.join(u", "_s));
    }
    return difference ? u"%1: A − B. Teal: %2"_s.arg(name(), words(info_of(quantity).lower))
                      : quantity_meaning(quantity, attribution);
}

QString TokenValues::textAt(std::size_t token) const {
    if (token >= values.size() || std::isnan(values[token])) {
        return {};
    }
    return classes.isEmpty() ? text(static_cast<double>(values[token]))
                             : classes.value(static_cast<qsizetype>(values[token]));
}

TokenValues token_values(Quantity quantity, const SequenceData& a, qint64 maxSteps, Attribution attribution) {
    TokenValues result;
    result.quantity = quantity;
    result.attribution = attribution;
    result.values =
        by_token(a.tokens.size(), attribution,
                 [&, value = info_of(quantity).value](std::size_t row) { return value(a.tokens, row); });
    result.look(look_of(kind_of(quantity, maxSteps), spread_of(std::span<const float>(result.values))));
    return result;
}

TokenValues replay_values(const std::vector<std::int32_t>& steps, qint64 maxSteps, const QString& policy,
                          Attribution attribution) {
    TokenValues result;
    result.quantity = Quantity::steps;
    result.attribution = attribution;
    result.replay = policy;
    result.values = by_token(steps.size(), attribution, [&](std::size_t row) { return steps[row]; });
    result.look(look_of(kind_of(Quantity::steps, maxSteps), {}));
    return result;
}

TokenValues annotation_values(const SequenceData& a, const QString& name) {
    TokenValues result;
    result.annotation = name;
    const TokenAnnotation* one = a.annotation(name);
    if (one == nullptr) {
        result.values.assign(a.tokens.size(), nan);
        result.notice = u"This run has no annotation named %1"_s.arg(name);
        return result;
    }
    constexpr double most = std::numeric_limits<float>::max(); // enough for colours
    for (const double value : one->values) {
        result.values.push_back(
            static_cast<float>(std::isnan(value) ? value : std::clamp(value, -most, most)));
    }
    result.classes = one->classes;
    result.look(
        look_of(kind_of_annotation(name, one->category), spread_of(std::span<const float>(result.values))));
    return result;
}

QString format_annotation(const TokenAnnotation& annotation, std::size_t token) {
    if (token >= annotation.values.size() || std::isnan(annotation.values[token])) {
        return {};
    }
    const double value = annotation.values[token];
    return annotation.category ? annotation.classes.value(static_cast<qsizetype>(value))
                               : QString::number(value, 'g', QLocale::FloatingPointShortest);
}

QString short_annotation(const TokenAnnotation& annotation, std::size_t token) {
    const QString exact = format_annotation(annotation, token);
    if (annotation.category || exact.isEmpty()) {
        return exact;
    }
    const double value = annotation.values[token];
    return look_of(kind_of_annotation(annotation.name, false), {std::min(value, 0.0), 0}).text(value);
}

const ColourMap& map_of(const ValueLook& look, const Theme& theme) {
    return look.kind.number == NumberKind::category ? theme.classMap()
           : look.diverging                         ? theme.differenceMap()
                                                    : theme.textMap();
}

TokenValues token_differences(Quantity quantity, const SequenceData& a, const SequenceData* b,
                              Attribution attribution) {
    TokenValues result;
    result.quantity = quantity;
    result.attribution = attribution;
    result.difference = true;
    result.values.assign(a.tokens.size(), nan);
    ValueKind kind = kind_of(quantity);
    kind.difference = true;
    result.look(look_of(kind, {}));
    if (b == nullptr) {
        result.notice = u"Choose run B in the Library to see differences"_s;
        return result;
    }
    // Compare the tokens that both runs have, because a running recording may have fewer.
    const std::size_t both = std::min(a.tokens.size(), b->tokens.size());
    if (!std::equal(a.tokens.id.begin(), a.tokens.id.begin() + static_cast<std::ptrdiff_t>(both),
                    b->tokens.id.begin())) {
        result.notice = u"Runs A and B have different tokens here. Choose a run B of the same text, or "
                        "switch A − B off"_s;
        return result;
    }
    const std::vector<float> values = by_token(both, attribution, [&](std::size_t row) {
        return quantity_of(quantity, a.tokens, row) - quantity_of(quantity, b->tokens, row);
    });
    std::copy(values.begin(), values.end(), result.values.begin());
    // Differences far below the uncertainty of A's own mean stay pale.
    ValueSpread spread = spread_of(std::span<const float>(result.values));
    spread.size = std::max(spread.size, interval_of_mean(by_token(both, attribution, [&](std::size_t row) {
                               return quantity_of(quantity, a.tokens, row);
                           })));
    result.look(look_of(kind, spread));
    return result;
}

TokenValues shown_values(const TextLook& look, const SequenceData& a, const SequenceData* b, qint64 maxSteps,
                         Attribution attribution) {
    return !look.annotation.isEmpty() ? annotation_values(a, look.annotation)
           : look.difference          ? token_differences(look.quantity, a, b, attribution)
                                      : token_values(look.quantity, a, maxSteps, attribution);
}

} // namespace ponderscope
