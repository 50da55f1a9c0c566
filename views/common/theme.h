// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/colour_map.h"
#include "views/common/selection.h"

#include <QColor>
#include <QFont>
#include <QObject>
#include <QPalette>

#include <vector>

namespace ponderscope {

/// Every colour that the window uses, by role. Views never name a colour themselves.
struct Palette {
    QColor panel;  ///< background of everything
    QColor field;  ///< line edits, combo boxes, empty grooves
    QColor line;   ///< one-pixel lines between panels
    QColor border; ///< of fields and buttons
    QColor text;
    QColor soft;     ///< labels, units, axis numbers
    QColor faint;    ///< less important marks: control characters, empty ticks
    QColor selected; ///< row of a list that is selected
    QColor hover;    ///< row, button or tab under the cursor
    QColor a;        ///< run A, and the accent of the program
    QColor aLight;   ///< bars of A that carry no emphasis
    QColor onA;      ///< text on a filled with `a`
    QColor b;        ///< run B
    QColor bLight;
    QColor onB;
    QColor halted;       ///< a step that did not run; never a colour of a scale
    QColor warningPanel; ///< background of a notice
    QColor warningText;
    QColor errorPanel;
    QColor errorText;
};

enum class Appearance { system, light, dark, contrast };
enum class MagnitudeMap { viridis, cividis, magma, grey };

/// Colours, fonts and colour maps of one window. Owned by the program, handed to every view; GUI thread only.
/// `changed` is emitted for all of it: views repaint.
class Theme : public QObject {
    Q_OBJECT
public:
    /// \p systemDark: what Appearance::system means on this desktop (see system_prefers_dark).
    explicit Theme(Appearance appearance, bool systemDark = false, QObject* parent = nullptr);

    [[nodiscard]] Appearance appearance() const { return appearance_; }
    void setAppearance(Appearance appearance);
    [[nodiscard]] bool dark() const;
    [[nodiscard]] const Palette& colours() const;
    [[nodiscard]] QPalette qtPalette() const;

    // Fonts in points: they follow the text size of the desktop.
    [[nodiscard]] QFont small() const;    ///< axis numbers, units, hints
    [[nodiscard]] QFont body() const;     ///< the desktop's size
    [[nodiscard]] QFont strong() const;   ///< bold: titles of plots, names
    [[nodiscard]] QFont caps() const;     ///< small, bold, wide: names of sections, in capitals
    [[nodiscard]] QFont headline() const; ///< large and bold: the inspector's token
    [[nodiscard]] QFont reading() const;  ///< the text itself, of textSize()
    [[nodiscard]] QFont mono() const;     ///< fixed width: paths, expressions
    /// A length made for a body of 13 pixels, for the body that there is; never less.
    [[nodiscard]] int scaled(int pixels) const;

    /// Pixels at 96 dots per inch, 9 to 48; 19 unless changed.
    [[nodiscard]] int textSize() const { return textSize_; }
    void setTextSize(int pixels);

    [[nodiscard]] MagnitudeMap magnitude() const { return magnitude_; }
    void setMagnitude(MagnitudeMap map);
    /// Heatmaps.
    [[nodiscard]] const ColourMap& magnitudeMap() const { return magnitudeMap_; }
    /// Behind text; 0 is the panel's colour.
    [[nodiscard]] const ColourMap& textMap() const { return textMap_; }
    /// Behind text; by the number of a class.
    [[nodiscard]] const ColourMap& classMap() const { return classMap_; }
    /// Behind text and in heatmaps; 0.5 is the panel's colour.
    [[nodiscard]] const ColourMap& differenceMap() const { return differenceMap_; }

    /// The one colour of a run in text, plots, lists and figures: teal as A, orange as B, else the colour it
    /// got when it was first seen, which it keeps.
    [[nodiscard]] QColor runColour(const RunKey& run, const Selection& selection);
    /// Colours of runs that are neither A nor B, in the order in which they are given out; repeats after the
    /// last.
    [[nodiscard]] static const std::vector<QColor>& runColours(bool dark);

Q_SIGNALS:
    void changed();

private:
    void rebuildMaps();
    [[nodiscard]] QFont sized(double share) const; ///< of the body

    Appearance appearance_;
    bool systemDark_;
    MagnitudeMap magnitude_ = MagnitudeMap::viridis;
    int textSize_ = 19;
    QString family_;
    double points_; ///< of the body
    std::vector<RunKey> seen_;
    ColourMap magnitudeMap_;
    ColourMap textMap_;
    ColourMap classMap_;
    ColourMap differenceMap_;
};

/// Whether the desktop's own palette is dark. Ask before the program sets a palette of its own.
bool system_prefers_dark();

} // namespace ponderscope
