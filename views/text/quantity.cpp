// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/quantity.h"

#include "views/common/format.h"
#include "views/common/theme.h"
#include "views/common/translated.h"

#include <QLocale>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Half of the 95 % interval of a mean, as if the tokens were independent: they are not, so that the true one
/// is wider. 0 for fewer than two.
double interval_of_mean(const std::vector<float>& values) {
    double count = 0, mean = 0, squares = 0; // Welford
    for (const float value : values) {
        if (std::isfinite(value)) {
            const double shift = static_cast<double>(value) - mean;
            mean += shift / ++count;
            squares += shift * (static_cast<double>(value) - mean);
        }
    }
    return count < 2 ? 0 : 1.96 * std::sqrt(squares / (count - 1) / count);
}

/// Calls visit(value of a row) with the column chosen once, not once a row: a million tokens are recoloured
/// within a frame.
template <typename Visit>
void with_column(Quantity quantity, const TokenColumns& tokens, Visit visit) {
    switch (quantity) {
    case Quantity::nll:
        visit([&column = tokens.nll](std::size_t row) { return column[row]; });
        break;
    case Quantity::entropy:
        visit([&column = tokens.entropy](std::size_t row) { return column[row]; });
        break;
    case Quantity::rank:
        visit([&column = tokens.rank](std::size_t row) {
            return column[row] > 0 ? static_cast<float>(column[row]) : nan;
        });
        break;
    case Quantity::steps:
        visit([&column = tokens.steps](std::size_t row) { return static_cast<float>(column[row]); });
        break;
    case Quantity::maxProbability:
        visit([&column = tokens.max_probability](std::size_t row) { return column[row]; });
        break;
    case Quantity::flops:
        visit([&column = tokens.flops](std::size_t row) { return static_cast<float>(column[row]); });
        break;
    }
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
    switch (quantity) {
    case Quantity::nll:
        return QStringLiteral("nll");
    case Quantity::entropy:
        return QStringLiteral("entropy");
    case Quantity::rank:
        return QStringLiteral("rank");
    case Quantity::steps:
        return QStringLiteral("steps");
    case Quantity::maxProbability:
        return QStringLiteral("probability");
    case Quantity::flops:
        return QStringLiteral("flops");
    }
    return {};
}

std::optional<Quantity> quantity_called(const QString& name) {
    for (const Quantity quantity : all_quantities) {
        if (name.compare(quantity_key(quantity), Qt::CaseInsensitive) == 0 ||
            name.compare(quantity_name(quantity), Qt::CaseInsensitive) == 0) {
            return quantity;
        }
    }
    return std::nullopt;
}

QString quantity_name(Quantity quantity) {
    switch (quantity) {
    case Quantity::nll:
        return tr("NLL");
    case Quantity::entropy:
        return tr("Entropy");
    case Quantity::rank:
        return tr("Rank");
    case Quantity::steps:
        return tr("Steps");
    case Quantity::maxProbability:
        return tr("Max probability");
    case Quantity::flops:
        return tr("FLOPs");
    }
    return {};
}

QString quantity_unit(Quantity quantity) {
    return quantity == Quantity::nll || quantity == Quantity::entropy ? tr("nats") : QString();
}

QString quantity_meaning(Quantity quantity, Attribution attribution) {
    const bool own = attribution == Attribution::predicted;
    switch (quantity) {
    case Quantity::nll:
        return own ? tr("surprise at the token, −ln p; 0 is certain")
                   : tr("surprise at the next token, −ln p; 0 is certain");
    case Quantity::entropy:
        return own ? tr("entropy of the prediction of it")
                   : tr("entropy of the prediction of the next token");
    case Quantity::rank:
        return own ? tr("rank of the token by logit; 1 is the model’s first choice")
                   : tr("rank of the next token by logit; 1 is the model’s first choice");
    case Quantity::steps:
        return own ? tr("pondering steps that predicted it") : tr("pondering steps spent at it");
    case Quantity::maxProbability:
        return own ? tr("highest probability of any token in its place")
                   : tr("highest probability of any next token");
    case Quantity::flops:
        return own ? tr("operations spent on predicting it") : tr("operations spent at it");
    }
    return {};
}

QString difference_meaning(Quantity quantity) {
    const QString name = quantity_name(quantity);
    switch (quantity) {
    case Quantity::nll:
    case Quantity::rank:
        return tr("%1 of A minus B; teal: A is better").arg(name);
    case Quantity::entropy:
        return tr("%1 of A minus B; teal: A is surer").arg(name);
    case Quantity::maxProbability:
        return tr("%1 of A minus B; teal: A is less sure").arg(name);
    case Quantity::steps:
    case Quantity::flops:
        return tr("%1 of A minus B; teal: A takes fewer").arg(name);
    }
    return {};
}

ValueKind kind_of(Quantity quantity, qint64 maxSteps) {
    switch (quantity) {
    case Quantity::nll:
    case Quantity::entropy:
        return {NumberKind::nats, false, 0};
    case Quantity::rank:
        return {NumberKind::rank, false, 0};
    case Quantity::steps:
        return {NumberKind::count, false, static_cast<double>(std::max<qint64>(maxSteps, 1))};
    case Quantity::maxProbability:
        return {NumberKind::probability, false, 0};
    case Quantity::flops:
        return {NumberKind::operations, false, 0};
    }
    return {};
}

QString format_quantity(Quantity quantity, double value) {
    return look_of(kind_of(quantity), {}).text(value);
}

double quantity_of(Quantity quantity, const TokenColumns& tokens, std::size_t row) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    if (row >= tokens.size()) {
        return none;
    }
    switch (quantity) {
    case Quantity::nll:
        return tokens.nll[row];
    case Quantity::entropy:
        return tokens.entropy[row];
    case Quantity::rank:
        return tokens.rank[row] > 0 ? tokens.rank[row] : none;
    case Quantity::steps:
        return tokens.steps[row];
    case Quantity::maxProbability:
        return tokens.max_probability[row];
    case Quantity::flops:
        return static_cast<double>(tokens.flops[row]);
    }
    return none;
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
    with_column(quantity, a.tokens,
                [&](auto value) { result.values = by_token(a.tokens.size(), attribution, value); });
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
        result.notice = tr("This run has no annotation %1").arg(name);
        return result;
    }
    constexpr double most = std::numeric_limits<float>::max(); // colours need no more
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

ColourMap paper_map_of(const ValueLook& look) {
    return look.kind.number == NumberKind::category ? ColourMap::classes(false)
           : look.diverging                         ? ColourMap::diverging(false)
                                                    : ColourMap::text(false);
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
        result.notice = tr("Choose a run B in the Library to see differences");
        return result;
    }
    // A recording in progress may be behind: what both have is compared.
    const std::size_t both = std::min(a.tokens.size(), b->tokens.size());
    if (!std::equal(a.tokens.id.begin(), a.tokens.id.begin() + static_cast<std::ptrdiff_t>(both),
                    b->tokens.id.begin())) {
        result.notice =
            tr("B does not read the same tokens here, so there is no A − B: choose a run over the "
               "same text as B, or switch A − B off");
        return result;
    }
    const std::vector<float> values = by_token(both, attribution, [&](std::size_t row) {
        return quantity_of(quantity, a.tokens, row) - quantity_of(quantity, b->tokens, row);
    });
    std::copy(values.begin(), values.end(), result.values.begin());
    // Differences far below what the mean of A itself is known to are no news: they stay pale.
    ValueSpread spread = spread_of(std::span<const float>(result.values));
    spread.size = std::max(spread.size, interval_of_mean(by_token(both, attribution, [&](std::size_t row) {
                               return quantity_of(quantity, a.tokens, row);
                           })));
    result.look(look_of(kind, spread));
    return result;
}

} // namespace ponderscope
