// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/quantities.h"
#include "views/common/colour_map.h"
#include "views/common/selection.h"
#include "views/common/trace_data.h"
#include "views/common/value_look.h"

#include <QString>

#include <optional>
#include <vector>

namespace ponderscope {

class Theme;

QString quantity_name(Quantity quantity); ///< "NLL"
QString quantity_key(Quantity quantity);  ///< "nll"
/// The quantity with this key or name, in any case.
std::optional<Quantity> quantity_called(const QString& name);
/// How to draw and print a quantity. \p maxSteps: the run's K, the end of the scale of steps.
ValueKind kind_of(Quantity quantity, qint64 maxSteps = 0);
/// A short explanation of a token's colour, beside the scale.
QString quantity_meaning(Quantity quantity, Attribution attribution);
/// The text of \p value in lists and tooltips.
QString format_quantity(Quantity quantity, double value);
/// The quantity in one row of the trace; NaN: not scored or not read out.
double quantity_of(Quantity quantity, const TokenColumns& tokens, std::size_t row);

/// The values of all tokens of a sequence, and how to draw them.
struct TokenValues : ValueLook {
    Quantity quantity = Quantity::nll;
    bool difference = false; ///< A − B
    Attribution attribution = Attribution::predicted;
    std::vector<float> values; ///< value that each token shows (attribution applied); NaN: no value
    QString annotation;        ///< name of the annotation; empty: the values are a quantity
    QStringList classes;       ///< classes of a category: the values are indices in this list
    QString replay;            ///< policy of replayed steps; empty: recorded steps
    QString notice;            ///< why values are missing; else empty

    [[nodiscard]] QString name() const;    ///< name of the quantity or annotation
    [[nodiscard]] QString unit() const;    ///< empty for counts and annotations
    [[nodiscard]] QString meaning() const; ///< explanation beside the scale
    /// The value of a token in tooltips; empty: no value.
    [[nodiscard]] QString textAt(std::size_t token) const;
    /// Replaces the look and keeps all other members.
    void look(const ValueLook& look) { static_cast<ValueLook&>(*this) = look; }
};

/// The values of a quantity. \p maxSteps: the run's K. Linear in the number of tokens.
TokenValues token_values(Quantity quantity, const SequenceData& a, qint64 maxSteps, Attribution attribution);
/// The values for a look: its annotation, A − B, or its quantity.
TokenValues shown_values(const TextLook& look, const SequenceData& a, const SequenceData* b, qint64 maxSteps,
                         Attribution attribution);
/// Values from replayed steps. \p steps: the steps of each row under \p policy.
TokenValues replay_values(const std::vector<std::int32_t>& steps, qint64 maxSteps, const QString& policy,
                          Attribution attribution);
/// An annotation's values, the same under both attributions. If it is missing, `notice` says so.
TokenValues annotation_values(const SequenceData& a, const QString& name);
/// The value of a token, as written in a condition: "VERB", "0.25"; empty: no value.
QString format_annotation(const TokenAnnotation& annotation, std::size_t token);
/// The value of a token for tooltips: at most 4 significant digits; differences have a sign.
QString short_annotation(const TokenAnnotation& annotation, std::size_t token);
/// The colour map for values behind text.
const ColourMap& map_of(const ValueLook& look, const Theme& theme);
/// A − B of a quantity. If \p b is null or has other tokens, all values are NaN and `notice` says why.
TokenValues token_differences(Quantity quantity, const SequenceData& a, const SequenceData* b,
                              Attribution attribution);

} // namespace ponderscope
