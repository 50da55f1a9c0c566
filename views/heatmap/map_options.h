// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/value_look.h"
#include "views/heatmap/step_map_canvas.h"

#include <QToolButton>

#include <optional>

namespace ponderscope {

class ColourRanges;
class Theme;

/// The button and menu "Scale and rows" of a map: what of its values the scale spans, whether the colours
/// part at a fixed centre, whether the scale is locked, and how the rows follow each other. Every map has its
/// own.
class MapOptions : public QToolButton {
    Q_OBJECT
public:
    MapOptions(Theme& theme, StepMapCanvas& canvas, QWidget* parent = nullptr);

    enum class Clip { usual, all, one_percent, five_percent };
    void setClip(Clip clip);
    /// Two colours that part at the centre; none: one colour map from low to high; automatic: as look_of()
    /// says of the map's values.
    enum class Centre { automatic, none, zero, median, value };
    void setCentre(Centre centre, double value = 0); ///< \p value counts for Centre::value only
    /// While locked, the scale stays through other signals, runs and sequences, so that two maps compare.
    void setScaleLocked(bool locked);

    /// Ends that are held for the map's signal, here or in another panel, come before what the scale spans.
    void setRanges(ColourRanges& ranges);

    /// Gives the canvas the scale that these choices make of its map; call it after the map changed.
    void apply();

Q_SIGNALS:
    void changed(); ///< by the user or a setter: apply() again

private:
    void buildMenu();
    void askForCentre();
    void askForRange();

    StepMapCanvas& canvas_;
    Clip clip_ = Clip::usual;
    Centre centre_ = Centre::automatic;
    double value_ = 0;
    std::optional<ValueLook> locked_;
    ColourRanges* ranges_ = nullptr;
    StepMapCanvas::Order order_ = StepMapCanvas::Order::recorded;
    int group_ = 1;
};

} // namespace ponderscope
