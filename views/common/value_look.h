// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/quantities.h"
#include "views/common/colour_map.h"

#include <QString>

#include <array>
#include <optional>
#include <span>

namespace ponderscope {

/// The kind of a column of numbers, independent of its values.
struct ValueKind {
    NumberKind number = NumberKind::plain;
    /// The values are differences between runs or steps, shown in two colours that meet at 0.
    bool difference = false;
    double known_end = 0; ///< the known end of a count, such as the run's largest number of steps; 0: unknown
};
ValueKind kind_of_signal(const SignalInfo& info);
/// A name that contains "_minus_" is a difference, because the program gives such names to derived columns.
ValueKind kind_of_annotation(const QString& name, bool category);

struct ValueSpread {
    double least = 0; ///< the smallest finite value; NaN: none
    double size = 0;  ///< a magnitude that few values exceed
};
/// The spread of finite values, float or double. `size`: 98th percentile of magnitudes in a large sample.
template <typename T>
ValueSpread spread_of(std::span<const T> values);

/// The ends of a colour scale that the user set; empty: determined by the values.
using HeldRange = std::optional<std::array<double, 2>>;

/// How a column of numbers is drawn and written, in text, table, map, legend, heatmaps and figures.
struct ValueLook {
    ValueKind kind;
    ColourScale scale;
    bool diverging = false; ///< two colours that meet in the middle of the scale
    bool held = false;      ///< the user set the ends

    /// Whether the colours meet at 0, so that numbers show their sign.
    [[nodiscard]] bool isSigned() const { return diverging && scale.low == -scale.high; }
    /// A number in tooltips and tables, with at most 4 significant digits.
    [[nodiscard]] QString text(double value) const;
    [[nodiscard]] QString end(double value) const; ///< a number beside the colour bar
    /// Applies fixed ends, except to categories. A diverging scale gets ± the larger magnitude.
    void hold(const HeldRange& range);
};
ValueLook look_of(const ValueKind& kind, const ValueSpread& spread);

} // namespace ponderscope
