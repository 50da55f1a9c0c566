// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/labels.h"

#include <QString>
#include <QWidget>

class QComboBox;

namespace ponderscope {

class ColourRanges;
class FlowLayout;
class ScaleBar;
class StepMapCanvas;
class Theme;

/// The line above a map: the signal, its scale, and at the right the numbers under the cursor.
class MapHeader : public QWidget {
    Q_OBJECT
public:
    /// \p name, \p tip: name and tooltip of the chooser.
    MapHeader(Theme& theme, StepMapCanvas& canvas, const QString& name, const QString& tip, QWidget* parent);

    [[nodiscard]] QComboBox* chooser() const { return chooser_; }
    /// Uses the ends in \p ranges for the map's scale, and adds a button with which the user sets them.
    void setRanges(ColourRanges& ranges);
    /// Fits the scale of the canvas and shows it.
    void showScale(const QString& unit, bool halted);
    void setReadout(const QString& text) { readout_->say(text); }
    [[nodiscard]] QString readout() const { return readout_->said(); }
    void clear(); ///< removes scale and readout

private:
    [[nodiscard]] QString signalName() const;

    Theme& theme_;
    StepMapCanvas& canvas_;
    FlowLayout* line_;
    QComboBox* chooser_;
    ScaleBar* scale_;
    ColourRanges* ranges_ = nullptr;
    Readout* readout_;
    QString unit_;
    bool halted_ = false;
};

} // namespace ponderscope
