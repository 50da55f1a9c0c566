// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"
#include "views/common/value_look.h"

#include <QObject>

#include <array>
#include <map>

class QWidget;

namespace ponderscope {

/// The fixed ends of colour scales, by key: the name of a signal or quantity ("nll", "gate"), with a
/// minus behind it for differences of runs, or "=" and the name of an annotation. One a window, shared by all
/// that draw in colours: the text and a map of the same signal look alike. GUI thread.
class ColourRanges : public QObject {
    Q_OBJECT
public:
    /// The window's own; made on first use, goes with its data.
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

/// Asks for them. \p now: the ends as they are drawn. False: nothing changes.
bool ask_for_range(QWidget* parent, const ColourScale& now, HeldRange& range);

} // namespace ponderscope
