// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/heatmap/map_options.h"

#include <QString>
#include <QWidget>

class QComboBox;

namespace ponderscope {

class FlowLayout;
class Readout;
class ScaleBar;

/// The line above a map: what is shown, its scale, its options, and at the right the cell under the cursor in
/// numbers.
class MapHeader : public QWidget {
    Q_OBJECT
public:
    MapHeader(Theme& theme, StepMapCanvas& canvas, QWidget* parent = nullptr);

    [[nodiscard]] QComboBox* chooser() const { return chooser_; }
    [[nodiscard]] MapOptions* options() const { return options_; }
    /// Between scale and options.
    void insert(QWidget* widget);
    /// Gives canvas and scale bar what the options make of the canvas's map; again whenever they change.
    void showScale(const QString& unit, bool halted);
    void setReadout(const QString& text);
    [[nodiscard]] QString readout() const;
    void clear(); ///< no scale, no readout

private:
    Theme& theme_;
    StepMapCanvas& canvas_;
    FlowLayout* line_;
    QComboBox* chooser_;
    ScaleBar* scale_;
    MapOptions* options_;
    Readout* readout_;
    QString unit_;
    bool halted_ = false;
};

} // namespace ponderscope
