// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/colour_map.h"
#include "views/common/selection.h"

#include <QColor>
#include <QFont>
#include <QObject>
#include <QPalette>

#include <algorithm>
#include <utility>
#include <vector>

namespace ponderscope {

/// All colours of the window, by role. Views never name a colour themselves.
struct Palette {
    QColor panel;  ///< background of everything
    QColor field;  ///< line edits, combo boxes, empty grooves
    QColor line;   ///< one-pixel lines between panels
    QColor border; ///< border of fields and buttons
    QColor text;
    QColor soft;     ///< labels, units, axis numbers
    QColor faint;    ///< less important marks: control characters, empty ticks
    QColor selected; ///< selected row of a list
    QColor hover;    ///< row, button or tab under the cursor
    QColor a;        ///< run A, and the program's accent colour
    QColor aLight;   ///< bars of A without emphasis
    QColor onA;      ///< text on the colour `a`
    QColor b;        ///< run B
    QColor onB;
    QColor halted;       ///< a step that did not run; no colour scale contains it
    QColor warningPanel; ///< background of a notice
    QColor warningText;
    QColor errorPanel;
    QColor errorText;
};

enum class Appearance { system, light, dark, contrast };

/// Colours, fonts and colour maps of one window. The program owns the theme, and all views use it. GUI thread
/// only. After any change the theme emits `changed`, and views repaint.
class Theme : public QObject {
    Q_OBJECT
public:
    /// \p systemDark: whether Appearance::system is dark on this desktop (system_prefers_dark).
    explicit Theme(Appearance appearance, bool systemDark = false, QObject* parent = nullptr);

    [[nodiscard]] Appearance appearance() const { return appearance_; }
    void setAppearance(Appearance appearance) { set(appearance_, appearance); }
    [[nodiscard]] bool dark() const;
    [[nodiscard]] const Palette& colours() const;
    [[nodiscard]] QPalette qtPalette() const;

    // Fonts in points, which follow the desktop's text size.
    [[nodiscard]] QFont small() const { return sized(11.0 / 13); } ///< axis numbers, units, hints
    [[nodiscard]] QFont body() const { return sized(1); }          ///< the desktop's size
    [[nodiscard]] QFont strong() const { return sized(1, true); }  ///< bold: titles of plots, names
    [[nodiscard]] QFont caps() const; ///< small, bold, wide: names of sections, in capitals
    /// Large and bold: the inspector's token.
    [[nodiscard]] QFont headline() const { return sized(24.0 / 13, true); }
    [[nodiscard]] QFont reading() const; ///< font of the text, with textSize()
    [[nodiscard]] QFont mono() const;    ///< fixed width: paths, expressions
    /// Scales a length that was designed for body text of 13 pixels. Never smaller than \p pixels.
    [[nodiscard]] int scaled(int pixels) const;

    /// Pixels at 96 dots per inch, 9 to 48; the default is 19.
    [[nodiscard]] int textSize() const { return textSize_; }
    void setTextSize(int pixels) { set(textSize_, std::clamp(pixels, 9, 48)); }

    [[nodiscard]] MagnitudeMap magnitude() const { return magnitude_; }
    void setMagnitude(MagnitudeMap map) { set(magnitude_, map); }
    /// For heatmaps.
    [[nodiscard]] const ColourMap& magnitudeMap() const { return magnitudeMap_; }
    /// For backgrounds of text; 0 is the panel's colour.
    [[nodiscard]] const ColourMap& textMap() const { return textMap_; }
    /// For backgrounds of text, by the number of the class.
    [[nodiscard]] const ColourMap& classMap() const { return classMap_; }
    /// For backgrounds of text and for heatmaps; 0.5 is the panel's colour.
    [[nodiscard]] const ColourMap& differenceMap() const { return differenceMap_; }

    /// The colour of a run in text, plots, lists and figures: teal for A, orange for B. Another run gets a
    /// fixed colour on the first call.
    [[nodiscard]] QColor runColour(const RunKey& run, const Selection& selection);
    /// Colours for runs other than A and B, in the order of assignment. They repeat after the last.
    [[nodiscard]] static const std::vector<QColor>& runColours(bool dark);

    /// Calls \p set now and after each change, until \p owner is destroyed.
    template <class Set>
    void dress(QObject* owner, Set set) {
        set();
        connect(this, &Theme::changed, owner, set);
    }

Q_SIGNALS:
    void changed();

private:
    template <class Value>
    void set(Value& own, Value value) {
        if (std::exchange(own, value) != value) {
            rebuildMaps();
            Q_EMIT changed();
        }
    }
    void rebuildMaps();
    [[nodiscard]] QFont sized(double share, bool bold = false) const; ///< relative to the body font

    Appearance appearance_;
    bool systemDark_;
    MagnitudeMap magnitude_ = MagnitudeMap::viridis;
    int textSize_ = 19;
    QString family_;
    double points_; ///< size of the body font
    std::vector<RunKey> seen_;
    ColourMap magnitudeMap_;
    ColourMap textMap_;
    ColourMap classMap_;
    ColourMap differenceMap_;
};

/// Whether the desktop's palette is dark. Call it before the program sets its own palette.
bool system_prefers_dark();

} // namespace ponderscope
