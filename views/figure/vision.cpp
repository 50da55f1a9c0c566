// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/vision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace ponderscope::figure {
namespace {

using Linear = std::array<double, 3>;

double decoded(double level) {
    return level <= 0.04045 ? level / 12.92 : std::pow((level + 0.055) / 1.055, 2.4);
}

int encoded(double value) {
    value = std::clamp(value, 0.0, 1.0);
    const double level = value <= 0.0031308 ? 12.92 * value : 1.055 * std::pow(value, 1 / 2.4) - 0.055;
    return static_cast<int>(std::lround(255 * level));
}

double luminance(const Linear& c) {
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
}

Linear seen(const Linear& c, Vision vision) {
    if (vision == Vision::grey) {
        const double y = luminance(c);
        return {y, y, y};
    }
    if (vision == Vision::deuteranopia) {
        return {0.367322 * c[0] + 0.860646 * c[1] - 0.227968 * c[2],
                0.280085 * c[0] + 0.672501 * c[1] + 0.047413 * c[2],
                -0.011820 * c[0] + 0.042940 * c[1] + 0.968881 * c[2]};
    }
    return c;
}

Linear linear(QRgb rgb) {
    static const std::array<double, 256> table = [] {
        std::array<double, 256> values{};
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = decoded(static_cast<double>(i) / 255);
        }
        return values;
    }();
    return {table[static_cast<std::size_t>(qRed(rgb))], table[static_cast<std::size_t>(qGreen(rgb))],
            table[static_cast<std::size_t>(qBlue(rgb))]};
}

QRgb seen(QRgb rgb, Vision vision) {
    const Linear c = seen(linear(rgb), vision);
    return qRgb(encoded(c[0]), encoded(c[1]), encoded(c[2]));
}

/// CIE L*a*b* under D65.
Linear lab(QRgb rgb) {
    const Linear c = linear(rgb);
    const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
    const double x = f((0.4124 * c[0] + 0.3576 * c[1] + 0.1805 * c[2]) / 0.95047);
    const double y = f(luminance(c));
    const double z = f((0.0193 * c[0] + 0.1192 * c[1] + 0.9505 * c[2]) / 1.08883);
    return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

} // namespace

QImage as_seen(const QImage& image, Vision vision) {
    if (vision == Vision::normal) {
        return image;
    }
    QImage result = image.convertToFormat(QImage::Format_RGB32);
    // Neighbouring pixels mostly have the same colour, so remember the last result.
    QRgb before = qRgb(0, 0, 0);
    QRgb answer = seen(before, vision);
    for (int y = 0; y < result.height(); ++y) {
        auto* line = reinterpret_cast<QRgb*>(result.scanLine(y));
        for (int x = 0; x < result.width(); ++x) {
            if (line[x] != before) {
                before = line[x];
                answer = seen(before, vision);
            }
            line[x] = answer;
        }
    }
    return result;
}

double least_difference(const std::vector<QColor>& colours, Vision vision) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < colours.size(); ++i) {
        const Linear a = lab(seen(colours[i].rgb(), vision));
        for (std::size_t j = 0; j < i; ++j) {
            const Linear b = lab(seen(colours[j].rgb(), vision));
            least = std::min(least, std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]));
        }
    }
    return least;
}

} // namespace ponderscope::figure
