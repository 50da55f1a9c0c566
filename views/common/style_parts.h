// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QStyle>
#include <QStyleOption>

/// What the files of Style share; of no use elsewhere.
namespace ponderscope::style_parts {

constexpr qreal corner = 4;

/// The colour with another over it, \p share from 0 to 1.
inline QColor blended(const QColor& under, const QColor& over, double share) {
    const auto mix = [share](int a, int b) { return static_cast<int>(a + (b - a) * share); };
    return {mix(under.red(), over.red()), mix(under.green(), over.green()), mix(under.blue(), over.blue())};
}

inline bool is(const QStyleOption* option, QStyle::StateFlag flag) {
    return (option->state & flag) != 0;
}

} // namespace ponderscope::style_parts
