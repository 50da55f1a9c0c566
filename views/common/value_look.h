// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/quantities.h"
#include "views/common/colour_map.h"

#include <QString>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace ponderscope {

/// The kind of a column of numbers, known before its values.
struct ValueKind {
    NumberKind number = NumberKind::plain;
    /// The values are differences of two runs or two steps: white at 0 even where no value is below it.
    bool difference = false;
    double known_end = 0; ///< of a count, such as the run's largest number of steps; 0: from the values
};
ValueKind kind_of_signal(const SignalInfo& info);
/// A name with "_minus_", as the program gives it to a derived column, is a difference.
ValueKind kind_of_annotation(const QString& name, bool category);

struct ValueSpread {
    double least = 0; ///< of the finite values; NaN: there are none
    double size = 0;  ///< a magnitude that few values exceed
};
/// The spread of the finite values. `size` is the 98th percentile of a sample that is large enough for a
/// scale.
ValueSpread spread_of(std::span<const float> values);
ValueSpread spread_of(std::span<const double> values);

/// The ends of a colour scale that the user set; empty: from the values.
using HeldRange = std::optional<std::array<double, 2>>;

/// How a column of numbers is drawn and written. The text, its table, its map and its legend, the heatmaps
/// and the figures all take it from look_of().
struct ValueLook {
    ValueKind kind;
    ColourScale scale;
    bool diverging = false; ///< two colours that part at the middle of the scale
    bool held = false;      ///< the ends were set by the user

    /// The colours part at 0: numbers have their sign.
    [[nodiscard]] bool isSigned() const { return diverging && scale.low == -scale.high; }
    /// A number as tooltips and tables write it, with 4 significant digits at most.
    [[nodiscard]] QString text(double value) const;
    [[nodiscard]] QString end(double value) const; ///< a number beside the colour bar
    /// A diverging scale reaches as far to both sides as the farther end. A category has no ends.
    void hold(const HeldRange& range);
};
ValueLook look_of(const ValueKind& kind, const ValueSpread& spread);

} // namespace ponderscope
