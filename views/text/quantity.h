// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/colour_map.h"
#include "views/common/colour_ranges.h"
#include "views/common/selection.h"
#include "views/common/trace_data.h"

#include <QString>

#include <array>
#include <optional>
#include <vector>

namespace ponderscope {

class Theme;

/// A number per token that text can be coloured by.
enum class Quantity { nll, entropy, rank, steps, maxProbability, flops };
inline constexpr Quantity all_quantities[] = {Quantity::nll,   Quantity::entropy,        Quantity::rank,
                                              Quantity::steps, Quantity::maxProbability, Quantity::flops};

QString quantity_name(Quantity quantity); ///< "NLL"
/// As it is typed: "nll", "entropy", "rank", "steps", "probability", "flops".
QString quantity_key(Quantity quantity);
/// By its key or its name, in any case.
std::optional<Quantity> quantity_called(const QString& name);
QString quantity_unit(Quantity quantity); ///< "nats"; empty for counts
/// What the colour of a token means, short enough to stand beside the scale.
QString quantity_meaning(Quantity quantity, Attribution attribution);
/// As it stands in lists and tooltips.
QString format_quantity(Quantity quantity, double value);

/// The quantity of one row of the trace; NaN where it was not scored or read out.
double quantity_of(Quantity quantity, const TokenColumns& tokens, std::size_t row);

/// Values of every token of the window, with the scale that they are drawn on.
struct TokenValues {
    Quantity quantity = Quantity::nll;
    bool difference = false; ///< A − B
    Attribution attribution = Attribution::predicted;
    std::vector<float> values; ///< by token of the window (attribution applied); NaN = nothing to show
    ColourScale scale;
    bool held = false;   ///< the scale's ends were set, not taken from the values
    QString annotation;  ///< the annotation that these are; empty: a quantity
    QStringList classes; ///< of an annotation that is a category: the values are their numbers
    QString replay;      ///< the policy whose steps these are; empty: as recorded
    QString notice;      ///< why there is no difference; empty when all is well
};

/// \p maxSteps: the run's K. \p b: for differences; null gives a notice. Linear in the tokens.
TokenValues token_values(Quantity quantity, const SequenceData& a, qint64 maxSteps, Attribution attribution);
/// \p steps by row, as a replay of \p policy gives them.
TokenValues replay_values(const std::vector<std::int32_t>& steps, qint64 maxSteps, const QString& policy,
                          Attribution attribution);
/// An annotation of the tokens themselves, whatever the attribution; a notice where the run has none of that
/// name.
TokenValues annotation_values(const SequenceData& a, const QString& name);
/// "VERB", "0.25": what a condition finds it by; empty where the token has none.
QString format_annotation(const TokenAnnotation& annotation, std::size_t token);
/// Ends of a colour scale that hold whatever the values are.
/// Of classes there is no range.
void hold_range(TokenValues& values, const HeldRange& range);
/// What the values are drawn with.
const ColourMap& map_of(const TokenValues& values, const Theme& theme);
TokenValues token_differences(Quantity quantity, const SequenceData& a, const SequenceData* b,
                              Attribution attribution);

} // namespace ponderscope
