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
/// The quantity with the key or name \p name, in any case.
std::optional<Quantity> quantity_called(const QString& name);
/// How a quantity is drawn and written. \p maxSteps: the run's K, the end of the scale of steps.
ValueKind kind_of(Quantity quantity, qint64 maxSteps = 0);
/// A short meaning of a token's colour, beside the scale.
QString quantity_meaning(Quantity quantity, Attribution attribution);
/// \p value as lists and tooltips show it.
QString format_quantity(Quantity quantity, double value);
/// The quantity of one row of the trace; NaN if it was not scored or read out.
double quantity_of(Quantity quantity, const TokenColumns& tokens, std::size_t row);

/// Values of every token of the window, with how they are drawn.
struct TokenValues : ValueLook {
    Quantity quantity = Quantity::nll;
    bool difference = false; ///< A − B
    Attribution attribution = Attribution::predicted;
    std::vector<float> values; ///< by token of the window (attribution applied); NaN = nothing to show
    QString annotation;        ///< name of the annotation; empty: a quantity
    QStringList classes;       ///< of an annotation that is a category: the values are their numbers
    QString replay;            ///< the policy whose steps these are; empty: as recorded
    QString notice;            ///< why there is no difference; empty when all is well

    [[nodiscard]] QString name() const;    ///< of the quantity or the annotation
    [[nodiscard]] QString unit() const;    ///< empty for counts and annotations
    [[nodiscard]] QString meaning() const; ///< beside the scale
    /// The value of a token as tooltips show it; empty if there is none.
    [[nodiscard]] QString textAt(std::size_t token) const;
    /// Takes the look of a column; keeps everything else.
    void look(const ValueLook& look) { static_cast<ValueLook&>(*this) = look; }
};

/// \p maxSteps: the run's K. \p b: for differences; null gives a notice. Linear in the tokens.
TokenValues token_values(Quantity quantity, const SequenceData& a, qint64 maxSteps, Attribution attribution);
/// The values for a look: of its annotation, of A − B, or of its quantity.
TokenValues shown_values(const TextLook& look, const SequenceData& a, const SequenceData* b, qint64 maxSteps,
                         Attribution attribution);
/// \p steps by row, as a replay of \p policy gives them.
TokenValues replay_values(const std::vector<std::int32_t>& steps, qint64 maxSteps, const QString& policy,
                          Attribution attribution);
/// An annotation of the tokens themselves, independent of the attribution; with a notice if the run has none
/// of that name.
TokenValues annotation_values(const SequenceData& a, const QString& name);
/// The value as a condition writes it: "VERB", "0.25"; empty if the token has none.
QString format_annotation(const TokenAnnotation& annotation, std::size_t token);
/// For tooltips: 4 significant digits at most, and the sign of a difference.
QString short_annotation(const TokenAnnotation& annotation, std::size_t token);
/// The colour map for the values behind text.
const ColourMap& map_of(const ValueLook& look, const Theme& theme);
TokenValues token_differences(Quantity quantity, const SequenceData& a, const SequenceData* b,
                              Attribution attribution);

} // namespace ponderscope
