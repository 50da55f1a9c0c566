// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QImage>

#include <vector>

namespace ponderscope::figure {

enum class Vision {
    normal,
    grey,         ///< luminance: a black-and-white printer
    deuteranopia, ///< no green cones: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes (2009), severity 1
};

QColor as_seen(const QColor& colour, Vision vision);
/// Opaque pixels; the same for Vision::normal.
QImage as_seen(const QImage& image, Vision vision);

/// The least distance of two of the colours (CIE 1976 Delta E; 100 between black and white, about 2 is the
/// least that is seen side by side). Infinite for fewer than two.
double least_difference(const std::vector<QColor>& colours, Vision vision);
/// Below this two lines of a plot are hard to tell apart. Ours.
inline constexpr double readable_difference = 12;

} // namespace ponderscope::figure
