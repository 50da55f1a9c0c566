// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QString>

#include <array>
#include <cstdint>
#include <span>

namespace ponderscope {

/// 256 colours from 0 to 1. A value; cheap to copy, safe on every thread.
class ColourMap {
public:
    /// Magnitudes: perceptually uniform, readable in grey and by the colour-blind.
    static ColourMap viridis();
    static ColourMap cividis();
    static ColourMap magma();
    static ColourMap grey(); ///< even in lightness: CIE L* from 0 to 100
    /// For backgrounds of text: the panel's colour at 0, orange at 1, always light enough for readable text.
    static ColourMap text(bool dark);
    /// For differences: teal below, the panel's colour at 0.5, orange above. Text on it is readable.
    static ColourMap diverging(bool dark);
    /// For classes behind text: entry i is the colour of class i; neighbouring classes have distant hues.
    static ColourMap classes(bool dark);
    /// Piecewise linear in sRGB through \p stops, evenly spaced; at least two.
    static ColourMap through(std::span<const QColor> stops);

    /// \p position is clamped to [0, 1]; NaN gives position 0 (callers draw NaN themselves).
    [[nodiscard]] QRgb at(double position) const;
    /// 256 entries, opaque, format QImage::Format_RGB32.
    [[nodiscard]] const std::array<QRgb, 256>& table() const { return table_; }

private:
    std::array<QRgb, 256> table_{};
};

/// Maps values to positions of a colour map. Linear, or logarithmic for ranks.
struct ColourScale {
    double low = 0;
    double high = 1;
    bool logarithmic = false; ///< low > 0
    bool operator==(const ColourScale&) const = default;
    /// The position of \p value in [0, 1]; NaN stays NaN; infinities become 0 or 1. An empty scale gives 0.
    [[nodiscard]] double position(double value) const;
    /// The scale of class numbers, for ColourMap::classes.
    static ColourScale classes() { return {0, 255, false}; }
    /// A scale symmetric around zero: the middle of a diverging map is zero.
    static ColourScale symmetric(double magnitude) { return {-magnitude, magnitude, false}; }
};

/// The smallest of 1, 1.5, 2, 3, 4, 5, 6, 8, 10 times a power of ten that is at least \p value.
double nice_ceiling(double value);

namespace colour_tables {
extern const std::array<std::uint32_t, 256> viridis;
extern const std::array<std::uint32_t, 256> cividis;
extern const std::array<std::uint32_t, 256> magma;
} // namespace colour_tables

} // namespace ponderscope
