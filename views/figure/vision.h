// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QImage>

#include <vector>

namespace ponderscope::figure {

enum class Vision {
    normal,
    grey,         ///< luminance, as on a black-and-white printer
    deuteranopia, ///< no green cones: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes (2009), severity 1
};

/// The image as seen with \p vision, in opaque pixels; unchanged for Vision::normal.
QImage as_seen(const QImage& image, Vision vision);

/// The smallest distance between two of the colours, as CIE 1976 Delta E. Black and white have a distance of
/// 100. About 2 is just visible side by side. Infinite for fewer than two colours.
double least_difference(const std::vector<QColor>& colours, Vision vision);
/// Our own threshold: lines of a plot whose colours have a smaller distance are hard to distinguish.
inline constexpr double readable_difference = 12;

} // namespace ponderscope::figure
