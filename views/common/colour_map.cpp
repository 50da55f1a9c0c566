// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/colour_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {

namespace {

std::array<QRgb, 256> opaque(const std::array<std::uint32_t, 256>& table) {
    std::array<QRgb, 256> colours{};
    std::transform(table.begin(), table.end(), colours.begin(),
                   [](std::uint32_t rgb) { return 0xff000000u | rgb; });
    return colours;
}

double mixed(double a, double b, double t) {
    return a + (b - a) * t;
}

} // namespace

ColourMap ColourMap::viridis() {
    ColourMap map;
    map.table_ = opaque(colour_tables::viridis);
    return map;
}

ColourMap ColourMap::cividis() {
    ColourMap map;
    map.table_ = opaque(colour_tables::cividis);
    return map;
}

ColourMap ColourMap::magma() {
    ColourMap map;
    map.table_ = opaque(colour_tables::magma);
    return map;
}

ColourMap ColourMap::grey() {
    ColourMap map;
    for (std::size_t i = 0; i < map.table_.size(); ++i) {
        // CIE L* to the luminance Y, Y to sRGB.
        const double lightness = 100 * static_cast<double>(i) / 255;
        const double y = lightness > 8 ? std::pow((lightness + 16) / 116, 3) : lightness / 903.2963;
        const double encoded = y <= 0.0031308 ? 12.92 * y : 1.055 * std::pow(y, 1 / 2.4) - 0.055;
        const auto level = static_cast<int>(std::lround(255 * std::clamp(encoded, 0.0, 1.0)));
        map.table_[i] = qRgb(level, level, level);
    }
    return map;
}

ColourMap ColourMap::text(bool dark) {
    // The last colours leave the text a contrast of 7.6:1 (light) and 4.6:1 (dark).
    static const std::array<QColor, 7> light{QColor(0xffffff), QColor(0xfff7e4), QColor(0xffefc8),
                                             QColor(0xffe1a3), QColor(0xffcd80), QColor(0xfdb564),
                                             QColor(0xf89c4e)};
    static const std::array<QColor, 7> night{QColor(0x1f2226), QColor(0x2e2b23), QColor(0x3e3623),
                                             QColor(0x544223), QColor(0x6b4b21), QColor(0x82531e),
                                             QColor(0x96591a)};
    return dark ? through(night) : through(light);
}

ColourMap ColourMap::diverging(bool dark) {
    static const std::array<QColor, 7> light{QColor(0x6fb8aa), QColor(0xa4d3ca), QColor(0xd6ebe6),
                                             QColor(0xffffff), QColor(0xffe6bd), QColor(0xfdc680),
                                             QColor(0xf89c4e)};
    static const std::array<QColor, 7> night{QColor(0x286e61), QColor(0x27564e), QColor(0x243d3a),
                                             QColor(0x1f2226), QColor(0x433924), QColor(0x6e4e21),
                                             QColor(0x96591a)};
    return dark ? through(night) : through(light);
}

ColourMap ColourMap::classes(bool dark) {
    constexpr double golden =
        0.61803398874989485; // of a turn: neighbours are far apart, however many there are
    ColourMap map;
    for (std::size_t i = 0; i < map.table_.size(); ++i) {
        const double hue = std::fmod(0.08 + static_cast<double>(i) * golden, 1.0);
        const bool second = (i / 8) % 2 == 1; // hues come close again: then the other strength
        const double lightness = dark ? (second ? 0.28 : 0.22) : (second ? 0.72 : 0.84);
        const double strength = dark ? 0.45 : 0.75;
        map.table_[i] = QColor::fromHslF(static_cast<float>(hue), static_cast<float>(strength),
                                         static_cast<float>(lightness))
                            .rgb();
    }
    return map;
}

ColourMap ColourMap::through(std::span<const QColor> stops) {
    ColourMap map;
    for (std::size_t i = 0; i < map.table_.size(); ++i) {
        const double place = static_cast<double>(i) / 255.0 * static_cast<double>(stops.size() - 1);
        const std::size_t left = std::min(static_cast<std::size_t>(place), stops.size() - 2);
        const double t = place - static_cast<double>(left);
        const QColor& a = stops[left];
        const QColor& b = stops[left + 1];
        map.table_[i] = qRgb(static_cast<int>(std::lround(mixed(a.red(), b.red(), t))),
                             static_cast<int>(std::lround(mixed(a.green(), b.green(), t))),
                             static_cast<int>(std::lround(mixed(a.blue(), b.blue(), t))));
    }
    return map;
}

QRgb ColourMap::at(double position) const {
    if (!(position > 0)) { // also NaN
        return table_.front();
    }
    return table_[static_cast<std::size_t>(std::lround(std::min(position, 1.0) * 255.0))];
}

double ColourScale::position(double value) const {
    if (std::isnan(value)) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    double from = low;
    double to = high;
    if (logarithmic) {
        if (!(low > 0) || !(high > 0)) {
            return 0;
        }
        from = std::log(low);
        to = std::log(high);
        value = value > 0 ? std::log(value) : from;
    }
    if (!(to > from)) {
        return 0;
    }
    return std::clamp((value - from) / (to - from), 0.0, 1.0);
}

double nice_ceiling(double value) {
    if (!(value > 0) || !std::isfinite(value)) {
        return 1;
    }
    const double power = std::pow(10.0, std::floor(std::log10(value)));
    for (const double step : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0}) {
        if (value <= step * power * (1 + 1e-12)) {
            return step * power;
        }
    }
    return 10 * power;
}

} // namespace ponderscope
