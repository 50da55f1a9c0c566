// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWheelEvent>

#include <cstdlib>

namespace ponderscope {

/// Counts the notches of a wheel that zooms. A touchpad sends many small events, which add up; sideways
/// events, and those without a distance, count nothing.
class WheelNotches {
public:
    /// Notches since the last call, away from the user above 0.
    int turn(const QWheelEvent& event) {
        const QPoint delta = event.angleDelta();
        if (event.phase() == Qt::ScrollBegin || event.phase() == Qt::ScrollEnd ||
            (rest_ > 0) != (delta.y() > 0)) {
            rest_ = 0;
        }
        if (std::abs(delta.y()) <= std::abs(delta.x())) {
            return 0;
        }
        rest_ += delta.y();
        const int notches = rest_ / QWheelEvent::DefaultDeltasPerStep;
        rest_ -= notches * QWheelEvent::DefaultDeltasPerStep;
        return notches;
    }

private:
    int rest_ = 0; ///< eighths of a degree
};

} // namespace ponderscope
