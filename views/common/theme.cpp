// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/theme.h"

#include <QFontDatabase>
#include <QFontMetrics>
#include <QGuiApplication>

#include <algorithm>

namespace ponderscope {

namespace {

/// High contrast is black on white, with 7:1 for every text (WCAG AAA).
struct RoleColours {
    QColor Palette::*role;
    QRgb light, dark, contrast;
};
constexpr RoleColours roles[] = {
    {&Palette::panel, 0xffffff, 0x1f2226, 0xffffff},
    {&Palette::field, 0xf5f5f2, 0x17191c, 0xffffff},
    {&Palette::line, 0xe4e4e0, 0x33373c, 0x000000},
    {&Palette::border, 0xd8d8d3, 0x3a3f45, 0x000000},
    {&Palette::text, 0x1d2125, 0xe7e9eb, 0x000000},
    {&Palette::soft, 0x6a7076, 0x9aa1a8, 0x2b2b2b},
    {&Palette::faint, 0xd9d9d5, 0x3b4046, 0x8a8a8a},
    {&Palette::selected, 0xe8f2f0, 0x26332f, 0xcdeae4},
    {&Palette::hover, 0xf3f5f3, 0x272b2f, 0xe6e6e6},
    {&Palette::a, 0x1f7a6d, 0x5bb5a2, 0x00594c},
    {&Palette::aLight, 0xd4e8e4, 0x2c4a44, 0x9fd4c9},
    {&Palette::onA, 0xffffff, 0x10201c, 0xffffff},
    {&Palette::b, 0xc46a1b, 0xe39a55, 0x7a3300},
    {&Palette::onB, 0xffffff, 0x24170a, 0xffffff},
    {&Palette::halted, 0xececea, 0x2a2d31, 0xd0d0d0},
    {&Palette::warningPanel, 0xfdf3e3, 0x3a3322, 0xfff1cc},
    {&Palette::warningText, 0x855312, 0xe0b870, 0x4a2c00},
    {&Palette::errorPanel, 0xfdeceb, 0x43262a, 0xffd9d6},
    {&Palette::errorText, 0x9c2b25, 0xf0a6a0, 0x6b0000},
};

Palette palette_of(QRgb RoleColours::*theme) {
    Palette palette;
    for (const RoleColours& one : roles) {
        palette.*one.role = QColor(one.*theme);
    }
    return palette;
}

constexpr double least_points = 9.75;     ///< smallest size of the body font: 13 pixels at 96 dots per inch
constexpr double points_per_pixel = 0.75; ///< at 96 dots per inch

} // namespace

bool system_prefers_dark() {
    return QGuiApplication::palette().color(QPalette::Window).lightness() < 128;
}

Theme::Theme(Appearance appearance, bool systemDark, QObject* parent)
    : QObject(parent),
      appearance_(appearance),
      systemDark_(systemDark),
      family_(QFontDatabase::systemFont(QFontDatabase::GeneralFont).family()),
      points_(std::max(QFontDatabase::systemFont(QFontDatabase::GeneralFont).pointSizeF(), least_points)) {
    rebuildMaps();
}

bool Theme::dark() const {
    return appearance_ == Appearance::dark || (appearance_ == Appearance::system && systemDark_);
}

const Palette& Theme::colours() const {
    static const Palette light = palette_of(&RoleColours::light);
    static const Palette night = palette_of(&RoleColours::dark);
    static const Palette contrast = palette_of(&RoleColours::contrast);
    return appearance_ == Appearance::contrast ? contrast : dark() ? night : light;
}

QPalette Theme::qtPalette() const {
    const Palette& c = colours();
    QPalette palette(c.panel);
    for (const auto group : {QPalette::Active, QPalette::Inactive, QPalette::Disabled}) {
        const bool off = group == QPalette::Disabled;
        const QColor text = off ? c.soft : c.text;
        palette.setColor(group, QPalette::Window, c.panel);
        palette.setColor(group, QPalette::WindowText, text);
        palette.setColor(group, QPalette::Base, c.panel);
        palette.setColor(group, QPalette::AlternateBase, c.hover);
        palette.setColor(group, QPalette::Text, text);
        palette.setColor(group, QPalette::Button, c.field);
        palette.setColor(group, QPalette::ButtonText, text);
        palette.setColor(group, QPalette::BrightText, c.errorText);
        palette.setColor(group, QPalette::PlaceholderText, c.soft);
        palette.setColor(group, QPalette::Highlight, off ? c.selected : c.a);
        palette.setColor(group, QPalette::HighlightedText, off ? text : c.onA);
        palette.setColor(group, QPalette::ToolTipBase, c.panel);
        palette.setColor(group, QPalette::ToolTipText, c.text);
        palette.setColor(group, QPalette::Link, c.a);
        palette.setColor(group, QPalette::LinkVisited, c.a);
        palette.setColor(group, QPalette::Light, c.field);
        palette.setColor(group, QPalette::Midlight, c.field);
        palette.setColor(group, QPalette::Mid, c.border);
        palette.setColor(group, QPalette::Dark, c.border);
        palette.setColor(group, QPalette::Shadow, c.line);
    }
    return palette;
}

QFont Theme::sized(double share, bool bold) const {
    QFont font(family_);
    font.setPointSizeF(points_ * share);
    font.setBold(bold);
    return font;
}

QFont Theme::caps() const {
    QFont font = sized(10.0 / 13, true);
    font.setLetterSpacing(QFont::AbsoluteSpacing, 0.6);
    return font;
}

QFont Theme::reading() const {
    QFont font(family_);
    font.setPointSizeF(textSize_ * points_per_pixel);
    return font;
}

QFont Theme::mono() const {
    QFont font = sized(12.0 / 13);
    font.setFamily(QFontDatabase::systemFont(QFontDatabase::FixedFont).family());
    return font;
}

int Theme::scaled(int pixels) const {
    return std::max(pixels, pixels * QFontMetrics(body()).height() / 16);
}

void Theme::rebuildMaps() {
    magnitudeMap_ = ColourMap::magnitude(magnitude_);
    textMap_ = ColourMap::text(dark());
    classMap_ = ColourMap::classes(dark());
    differenceMap_ = ColourMap::diverging(dark());
}

QColor Theme::runColour(const RunKey& run, const Selection& selection) {
    auto place = std::ranges::find(seen_, run);
    if (place == seen_.end()) {
        place = seen_.insert(seen_.end(), run);
    }
    if (run == selection.runA()) {
        return colours().a;
    }
    if (run == selection.runB()) {
        return colours().b;
    }
    const std::vector<QColor>& others = runColours(dark());
    return others[static_cast<std::size_t>(place - seen_.begin()) % others.size()];
}

const std::vector<QColor>& Theme::runColours(bool dark) {
    // Distinguishable from teal, orange and each other, also for colour-blind readers.
    static const std::vector<QColor> light{QColor(0x6b5bb0), QColor(0x8a8f96), QColor(0x2f6fb0),
                                           QColor(0xb0487f), QColor(0x7d7a1e), QColor(0x4aa3c4),
                                           QColor(0x6a1020), QColor(0x3d4550)};
    static const std::vector<QColor> night{QColor(0x9a8be0), QColor(0x9aa0a7), QColor(0x6ba6e2),
                                           QColor(0xdc82b0), QColor(0xb8b455), QColor(0x7fcde8),
                                           QColor(0xc9836c), QColor(0xc6ccd3)};
    return dark ? night : light;
}

} // namespace ponderscope
