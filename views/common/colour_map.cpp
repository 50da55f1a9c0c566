// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/colour_map.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace ponderscope {

namespace {

// All tables are data in the public domain (CC0): viridis and magma by S. van der Walt and N. Smith (2015),
// cividis by J. R. Nunez, C. R. Anderton and R. S. Renslow (PLoS ONE 13(7), 2018,
// doi 10.1371/journal.pone.0199239); 256 steps, rounded to 8 bits, as RRGGBB without separators.
// clang-format off
constexpr std::string_view viridis_steps =
    "44015444025645045745055946075a46085c460a5d460b5e470d60470e6147106347116447136548146748166848176948186a481a6c481b6d481c6e481d6f481f70"
    "482071482173482374482475482576482677482878482979472a7a472c7a472d7b472e7c472f7d46307e46327e46337f463480453581453781453882443983443a83"
    "443b84433d84433e85423f854240864241864142874144874045884046883f47883f48893e49893e4a893e4c8a3d4d8a3d4e8a3c4f8a3c508b3b518b3b528b3a538b"
    "3a548c39558c39568c38588c38598c375a8c375b8d365c8d365d8d355e8d355f8d34608d34618d33628d33638d32648e32658e31668e31678e31688e30698e306a8e"
    "2f6b8e2f6c8e2e6d8e2e6e8e2e6f8e2d708e2d718e2c718e2c728e2c738e2b748e2b758e2a768e2a778e2a788e29798e297a8e297b8e287c8e287d8e277e8e277f8e"
    "27808e26818e26828e26828e25838e25848e25858e24868e24878e23888e23898e238a8d228b8d228c8d228d8d218e8d218f8d21908d21918c20928c20928c20938c"
    "1f948c1f958b1f968b1f978b1f988b1f998a1f9a8a1e9b8a1e9c891e9d891f9e891f9f881fa0881fa1881fa1871fa28720a38620a48621a58521a68522a78522a884"
    "23a98324aa8325ab8225ac8226ad8127ad8128ae8029af7f2ab07f2cb17e2db27d2eb37c2fb47c31b57b32b67a34b67935b77937b87838b9773aba763bbb753dbc74"
    "3fbc7340bd7242be7144bf7046c06f48c16e4ac16d4cc26c4ec36b50c46a52c56954c56856c66758c7655ac8645cc8635ec96260ca6063cb5f65cb5e67cc5c69cd5b"
    "6ccd5a6ece5870cf5773d05675d05477d1537ad1517cd2507fd34e81d34d84d44b86d54989d5488bd6468ed64590d74393d74195d84098d83e9bd93c9dd93ba0da39"
    "a2da37a5db36a8db34aadc32addc30b0dd2fb2dd2db5de2bb8de29bade28bddf26c0df25c2df23c5e021c8e020cae11fcde11dd0e11cd2e21bd5e21ad8e219dae319"
    "dde318dfe318e2e418e5e419e7e419eae51aece51befe51cf1e51df4e61ef6e620f8e621fbe723fde725";
constexpr std::string_view cividis_steps =
    "00224e00234f00245100255300255400265600275800285900285b00295d002a5f002a61002b62002c64002c66002d68002e6a002e6c002f6d00306f003070003170"
    "0031710132710533710833700c34700f357012357014367016377018376f1a386f1c396f1e3a6f203a6f213b6e233c6e243c6e263d6e273e6e293f6e2a3f6d2b406d"
    "2d416d2e416d2f426d31436d32436d33446d34456c35456c36466c38476c39486c3a486c3b496c3c4a6c3d4a6c3e4b6c3f4c6c404c6c414d6c424e6c434e6c444f6c"
    "45506c46516c47516c48526c49536c4a536c4b546c4c556c4d556c4e566c4f576c50576c51586d52596d535a6d545a6d555b6d555c6d565c6d575d6d585e6d595e6e"
    "5a5f6e5b606e5c616e5d616e5e626e5e636f5f636f60646f61656f62656f636670646770656870656870666970676a71686a71696b716a6c716b6d726c6d726c6e72"
    "6d6f726e6f736f70737071737172747272747273747374757474757575757676767777767777777878777979777a7a787b7a787c7b787d7c787e7c787e7d787f7e78"
    "807f78817f788280798381798482798582798683798784788885788985788a86788b87788c88788d88788e89788f8a78908b78918b78928c78928d78938e78948e77"
    "958f779690779791779892779992779a93769b94769c95769d95769e96769f9775a09875a19975a29975a39a74a49b74a59c74a69c74a79d73a89e73a99f73aaa073"
    "aba072aca172ada272aea371afa471b0a571b1a570b3a670b4a76fb5a86fb6a96fb7a96eb8aa6eb9ab6dbaac6dbbad6dbcae6cbdae6cbeaf6bbfb06bc0b16ac1b26a"
    "c2b369c3b369c4b468c5b568c6b667c7b767c8b866c9b965cbb965ccba64cdbb63cebc63cfbd62d0be62d1bf61d2c060d3c05fd4c15fd5c25ed6c35dd7c45cd9c55c"
    "dac65bdbc75adcc859ddc858dec958dfca57e0cb56e1cc55e2cd54e4ce53e5cf52e6d051e7d150e8d24fe9d34eead34cebd44bedd54aeed649efd748f0d846f1d945"
    "f2da44f3db42f5dc41f6dd3ff7de3ef8df3cf9e03afbe138fce236fde334fee434fee535fee636fee838";
constexpr std::string_view magma_steps =
    "00000401000501010601010802010902020b02020d03030f03031204041405041606051806051a07061c08071e0907200a08220b09240c09260d0a290e0b2b100b2d"
    "110c2f120d31130d34140e36150e38160f3b180f3d19103f1a10421c10441d11471e114920114b21114e22115024125325125527125829115a2a115c2c115f2d1161"
    "2f116331116533106734106936106b38106c390f6e3b0f703d0f713f0f72400f74420f75440f764510774710784910784a10794c117a4e117b4f127b51127c52137c"
    "54137d56147d57157e59157e5a167e5c167f5d177f5f187f601880621980641a80651a80671b80681c816a1c816b1d816d1d816e1e81701f81721f81732081752181"
    "7621817822817922827b23827c23827e24828025828125818326818426818627818827818928818b29818c29818e2a81902a81912b81932b80942c80962c80982d80"
    "992d809b2e7f9c2e7f9e2f7fa02f7fa1307ea3307ea5317ea6317da8327daa337dab337cad347cae347bb0357bb2357bb3367ab5367ab73779b83779ba3878bc3978"
    "bd3977bf3a77c03a76c23b75c43c75c53c74c73d73c83e73ca3e72cc3f71cd4071cf4070d0416fd2426fd3436ed5446dd6456cd8456cd9466bdb476adc4869de4968"
    "df4a68e04c67e24d66e34e65e44f64e55064e75263e85362e95462ea5661eb5760ec5860ed5a5fee5b5eef5d5ef05f5ef1605df2625df2645cf3655cf4675cf4695c"
    "f56b5cf66c5cf66e5cf7705cf7725cf8745cf8765cf9785df9795df97b5dfa7d5efa7f5efa815ffb835ffb8560fb8761fc8961fc8a62fc8c63fc8e64fc9065fd9266"
    "fd9467fd9668fd9869fd9a6afd9b6bfe9d6cfe9f6dfea16efea36ffea571fea772fea973feaa74feac76feae77feb078feb27afeb47bfeb67cfeb77efeb97ffebb81"
    "febd82febf84fec185fec287fec488fec68afec88cfeca8dfecc8ffecd90fecf92fed194fed395fed597fed799fed89afdda9cfddc9efddea0fde0a1fde2a3fde3a5"
    "fde5a7fde7a9fde9aafdebacfcecaefceeb0fcf0b2fcf2b4fcf4b6fcf6b8fcf7b9fcf9bbfcfbbdfcfdbf";
// clang-format on

std::array<QRgb, 256> colours_of(std::string_view steps) {
    std::array<QRgb, 256> colours{};
    for (std::size_t i = 0; i < colours.size(); ++i) {
        std::from_chars(&steps[6 * i], &steps[6 * i] + 6, colours[i], 16);
        colours[i] |= 0xff000000U;
    }
    return colours;
}

double mixed(double a, double b, double t) {
    return a + (b - a) * t;
}

} // namespace

ColourMap ColourMap::magnitude(MagnitudeMap name) {
    ColourMap map;
    if (name != MagnitudeMap::grey) {
        map.table_ = colours_of(name == MagnitudeMap::viridis   ? viridis_steps
                                : name == MagnitudeMap::cividis ? cividis_steps
                                                                : magma_steps);
        return map;
    }
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
        0.61803398874989485; // of a turn: neighbours are far apart for any number of classes
    ColourMap map;
    for (std::size_t i = 0; i < map.table_.size(); ++i) {
        const double hue = std::fmod(0.08 + static_cast<double>(i) * golden, 1.0);
        const bool second = (i / 8) % 2 == 1; // similar hues recur: alternate the lightness
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
