// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>

#include <array>
#include <span>
#include <string_view>
#include <utility>

namespace ponderscope {

/// Colours of magnitudes: perceptually uniform, readable in grey and by the colour-blind.
enum class MagnitudeMap { viridis, cividis, magma, grey };
inline constexpr std::array<std::pair<MagnitudeMap, std::string_view>, 4> magnitude_names{
    {{MagnitudeMap::viridis, "viridis"},
     {MagnitudeMap::cividis, "cividis"},
     {MagnitudeMap::magma, "magma"},
     {MagnitudeMap::grey, "grey"}}};

/// 256 colours for positions from 0 to 1. Cheap to copy, safe on every thread.
class ColourMap {
public:
    /// Grey is even in lightness: CIE L* from 0 to 100.
    static ColourMap magnitude(MagnitudeMap name);
    /// For backgrounds of text: the panel's colour at 0, orange at 1. Text on every colour is readable.
    static ColourMap text(bool dark);
    /// For differences behind readable text: teal below, the panel's colour at 0.5, orange above.
    static ColourMap diverging(bool dark);
    /// For classes behind text: entry i is the colour of class i; neighbouring classes have distant hues.
    static ColourMap classes(bool dark);
    /// Piecewise linear in sRGB through \p stops: at least two colours, evenly spaced from 0 to 1.
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
    bool logarithmic = false; ///< needs low > 0
    bool operator==(const ColourScale&) const = default;
    /// The position of \p value in [0, 1]; NaN stays NaN; infinities become 0 or 1. An empty scale gives 0.
    [[nodiscard]] double position(double value) const;
    /// The scale of class numbers, for ColourMap::classes.
    static ColourScale classes() { return {0, 255, false}; }
    /// A scale symmetric around zero: the middle of a diverging map is zero.
    static ColourScale symmetric(double magnitude) { return {-magnitude, magnitude, false}; }
};

/// The smallest round number that is at least \p value: 1, 1.5, 2, 3, 4, 5, 6, 8 or 10 times a power of ten.
double nice_ceiling(double value);

} // namespace ponderscope
