// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"
#include "views/common/value_look.h"

#include <QObject>

#include <array>
#include <map>

class QWidget;

namespace ponderscope {

/// The ends of colour scales that the user has fixed, by key. The key of a signal or quantity is its name
/// ("nll", "gate"), with a final minus for the difference of two runs. The key of an annotation is "=" and
/// its name. Each window has one object, so the text and a map of the same signal look alike. GUI thread.
class ColourRanges : public QObject {
    Q_OBJECT
public:
    /// The window's object, created on first use and destroyed with its data.
    static ColourRanges& of(TraceData& data);

    [[nodiscard]] HeldRange held(const QString& of) const;
    void hold(const QString& of, const HeldRange& range);
    using All = std::map<QString, std::array<double, 2>>;
    [[nodiscard]] const All& all() const { return ranges_; }
    void setAll(const All& ranges);

Q_SIGNALS:
    void changed();

private:
    using QObject::QObject;
    All ranges_;
};

/// Asks the user for the ends of a scale. \p now: the current ends. False: no change.
bool ask_for_range(QWidget* parent, const ColourScale& now, HeldRange& range);

} // namespace ponderscope
