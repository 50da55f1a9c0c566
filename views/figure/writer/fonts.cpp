// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/writer/fonts.h"

#include "core/base/error.h"

#include <QTextBoundaryFinder>
#include <QTransform>

#include <fontconfig/fontconfig.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
namespace {

/// The largest number of cached lines.
constexpr std::size_t most_shaped = 50'000;

using Pattern = std::unique_ptr<FcPattern, decltype(&FcPatternDestroy)>;
using FontSet = std::unique_ptr<FcFontSet, decltype(&FcFontSetDestroy)>;

int integer_of(const FcPattern* pattern, const char* key, int otherwise) {
    int value = otherwise;
    return FcPatternGetInteger(pattern, key, 0, &value) == FcResultMatch ? value : otherwise;
}

bool flag_of(const FcPattern* pattern, const char* key) {
    FcBool value = FcFalse;
    return FcPatternGetBool(pattern, key, 0, &value) == FcResultMatch && value == FcTrue;
}

std::string text_of(const FcPattern* pattern, const char* key) {
    FcChar8* text = nullptr;
    return FcPatternGetString(pattern, key, 0, &text) == FcResultMatch ? reinterpret_cast<const char*>(text)
                                                                       : "";
}

/// Whether the font has outlines and is neither a colour font nor a variable font.
bool is_usable(const FcPattern* pattern) {
    return flag_of(pattern, FC_OUTLINE) && !flag_of(pattern, FC_COLOR) && !flag_of(pattern, FC_VARIABLE);
}

bool is_upright(const FcPattern* pattern) {
    return integer_of(pattern, FC_SLANT, FC_SLANT_ROMAN) == FC_SLANT_ROMAN &&
           integer_of(pattern, FC_WIDTH, FC_WIDTH_NORMAL) == FC_WIDTH_NORMAL;
}

FontSet list_fonts(const Pattern& pattern) {
    const std::unique_ptr<FcObjectSet, decltype(&FcObjectSetDestroy)> wanted(
        FcObjectSetBuild(FC_FAMILY, FC_FILE, FC_INDEX, FC_WEIGHT, FC_SLANT, FC_WIDTH, FC_OUTLINE, FC_COLOR,
                         FC_VARIABLE, nullptr),
        &FcObjectSetDestroy);
    return {FcFontList(nullptr, pattern.get(), wanted.get()), &FcFontSetDestroy};
}

std::span<FcPattern*> fonts_of(const FontSet& set) {
    return set ? std::span(set->fonts, static_cast<std::size_t>(set->nfont)) : std::span<FcPattern*>();
}

Pattern family_pattern(const QString& family) {
    Pattern pattern(FcPatternCreate(), &FcPatternDestroy);
    FcPatternAddString(pattern.get(), FC_FAMILY,
                       reinterpret_cast<const FcChar8*>(family.toUtf8().constData()));
    return pattern;
}

bool ignorable(char32_t character) { // invisible: joiners, selectors, direction marks
    const QChar::Category category = QChar::category(character);
    return category == QChar::Other_Format || (character >= 0xfe00 && character <= 0xfe0f);
}

} // namespace

/// The used faces, and the fallback fonts in their order.
struct Fonts::Shelf {
    QString family;
    const FontFace* faces[2] = {nullptr, nullptr};                           ///< regular, bold
    std::map<std::pair<std::string, int>, std::unique_ptr<FontFace>> loaded; ///< null: cannot be used
    struct Order {
        FontSet set{nullptr, &FcFontSetDestroy};
        std::vector<FcPattern*> fonts; ///< fonts of the set
    };
    std::map<std::pair<bool, std::string>, Order> orders;          ///< by weight and language
    std::map<std::pair<bool, QString>, const FontFace*> fallbacks; ///< by weight, and language with grapheme
    std::unordered_map<std::string, ShapedText> shaped[2];

    const FontFace* load(const FcPattern* font) {
        const std::pair<std::string, int> place(text_of(font, FC_FILE), integer_of(font, FC_INDEX, 0));
        const auto [entry, fresh] = loaded.try_emplace(place);
        if (fresh) {
            entry->second = std::make_unique<FontFace>(place.first, static_cast<unsigned>(place.second),
                                                       QString::fromStdString(text_of(font, FC_FAMILY)));
        }
        return entry->second.get();
    }

    const Order& order(bool bold, const std::string& language) {
        Order& order = orders[{bold, language}];
        if (order.set) {
            return order;
        }
        const Pattern pattern = family_pattern(family);
        FcPatternAddString(pattern.get(), FC_FAMILY, reinterpret_cast<const FcChar8*>("sans-serif"));
        FcPatternAddString(pattern.get(), FC_LANG, reinterpret_cast<const FcChar8*>(language.c_str()));
        FcPatternAddInteger(pattern.get(), FC_WEIGHT, bold ? FC_WEIGHT_BOLD : FC_WEIGHT_REGULAR);
        FcConfigSubstitute(nullptr, pattern.get(), FcMatchPattern);
        FcDefaultSubstitute(pattern.get());
        FcResult result = FcResultMatch;
        order.set.reset(FcFontSort(nullptr, pattern.get(), FcFalse, nullptr, &result));
        std::ranges::copy_if(fonts_of(order.set), std::back_inserter(order.fonts),
                             [](const FcPattern* font) { return is_usable(font) && is_upright(font); });
        std::ranges::stable_partition(order.fonts, [](const FcPattern* font) {
            return text_of(font, FC_FAMILY).rfind("Noto Sans", 0) == 0;
        });
        return order;
    }

    /// The first fallback face with all these characters; null: none.
    const FontFace* find(const std::vector<char32_t>& characters, bool bold, const char* language) {
        for (const FcPattern* font : order(bold, language).fonts) {
            FcCharSet* has = nullptr;
            if (FcPatternGetCharSet(font, FC_CHARSET, 0, &has) != FcResultMatch ||
                !std::ranges::all_of(characters,
                                     [&](char32_t c) { return FcCharSetHasChar(has, c) != FcFalse; })) {
                continue;
            }
            try {
                if (const FontFace* face = load(font)) {
                    return face;
                }
            } catch (const EnvironmentError&) {
                continue; // try the next font
            }
        }
        return nullptr;
    }

    const FontFace* face_of(const QString& grapheme, bool bold, const char* language,
                            const FontFace* before) {
        const FontFace* own = faces[bold ? 1 : 0];
        std::vector<char32_t> characters;
        for (const char32_t character : grapheme.toUcs4()) {
            if (!ignorable(character)) {
                characters.push_back(character);
            }
        }
        for (const FontFace* face : {own, before}) { // prefer the own face, then the neighbour's face
            if (face != nullptr &&
                std::ranges::all_of(characters, [&](char32_t c) { return face->has(c); })) {
                return face;
            }
        }
        const auto [known, fresh] =
            fallbacks.try_emplace({bold, QLatin1String(language) + grapheme}, nullptr);
        if (fresh) {
            known->second = find(characters, bold, language);
            if (known->second == nullptr && !own->has(characters.front())) {
                known->second = find({characters.front()}, bold, language); // without its marks
            }
        }
        return known->second != nullptr ? known->second : own;
    }
};

Fonts::Fonts(std::shared_ptr<Shelf> shelf) : shelf_(std::move(shelf)) {}

QStringList Fonts::families() {
    const Pattern all(FcPatternCreate(), &FcPatternDestroy);
    const FontSet set = list_fonts(all);
    QStringList families;
    for (const FcPattern* font : fonts_of(set)) {
        if (is_usable(font)) {
            families << QString::fromStdString(text_of(font, FC_FAMILY));
        }
    }
    families.sort();
    families.removeDuplicates();
    return families;
}

Fonts Fonts::load(const QString& family) {
    const FontSet set = list_fonts(family_pattern(family));
    const std::span<FcPattern*> fonts = fonts_of(set);
    if (fonts.empty()) {
        throw EnvironmentError(
            ErrorId::environment_program,
            "The font \"" + family.toStdString() +
                "\", the typeface of the figure, was not found on this machine; install it" +
                (family == QLatin1String(default_family)
                     ? " (package fonts-dejavu-core)."
                     : std::string(", or choose another font, such as ") + default_family + "."));
    }
    auto shelf = std::make_shared<Shelf>();
    shelf->family = family;
    const auto nearest = [&](int weight) {
        // Usable fonts come first, then the nearest weight; the file's name decides between copies.
        return *std::ranges::min_element(fonts, [&](const FcPattern* a, const FcPattern* b) {
            const auto key = [&](const FcPattern* font) {
                return std::tuple(!is_usable(font), !is_upright(font),
                                  std::abs(integer_of(font, FC_WEIGHT, FC_WEIGHT_REGULAR) - weight),
                                  text_of(font, FC_FILE), integer_of(font, FC_INDEX, 0));
            };
            return key(a) < key(b);
        });
    };
    // Without a bold face, use the regular face: an artificially thickened face is no file to embed.
    const FcPattern* regular = nearest(FC_WEIGHT_REGULAR);
    const FcPattern* bold = nearest(FC_WEIGHT_BOLD);
    const bool is_bold = integer_of(bold, FC_WEIGHT, FC_WEIGHT_REGULAR) >= FC_WEIGHT_DEMIBOLD;
    shelf->faces[0] = shelf->load(regular);
    shelf->faces[1] = shelf->load(is_bold ? bold : regular);
    return Fonts(std::move(shelf));
}

const FontFace& Fonts::face(bool bold) const {
    return *shelf_->faces[bold ? 1 : 0];
}

const QString& Fonts::family() const {
    return shelf_->family;
}

const ShapedText& Fonts::shape(const QString& text, bool bold) const {
    auto& known = shelf_->shaped[bold ? 1 : 0];
    std::string key = text.toStdString();
    const auto found = known.find(key);
    if (found != known.end()) {
        return found->second;
    }
    if (known.size() >= most_shaped) {
        known.clear();
    }
    return known
        .emplace(std::move(key),
                 shape_text(text,
                            [&](const QString& grapheme, const char* language, const FontFace* before) {
                                return shelf_->face_of(grapheme, bold, language, before);
                            }))
        .first->second;
}

QString Fonts::elided(const QString& text, const TextStyle& style, double width) const {
    if (this->width(text, style) <= width) {
        return text;
    }
    const QString dots = u"…"_s;
    // Keep as many graphemes as fit by their own widths. Kerning with the dots may allow one more.
    const ShapedText shaped = shape(text, style.bold);
    const double room = width - this->width(dots, style);
    QTextBoundaryFinder finder(QTextBoundaryFinder::Grapheme, text);
    qsizetype kept = 0;
    while (finder.toNextBoundary() > 0) {
        double used = 0;
        for (const ShapedCluster& cluster : shaped.clusters) {
            used += cluster.to <= finder.position() ? (cluster.right - cluster.left) * style.size : 0;
        }
        if (used > room) {
            break;
        }
        kept = finder.position();
    }
    while (kept > 0 && this->width(text.left(kept) + dots, style) > width) {
        finder.setPosition(kept);
        kept = std::max<qsizetype>(finder.toPreviousBoundary(), 0);
    }
    return text.left(kept) + dots;
}

std::vector<char32_t> missing_characters(const DisplayList& list, const Fonts& fonts) {
    std::set<char32_t> missing;
    for (const Item& item : list.items()) {
        if (const auto* text = std::get_if<TextItem>(&item)) {
            const ShapedText& shaped = fonts.shape(text->text, text->style.bold);
            for (const ShapedCluster& cluster : shaped.clusters) {
                const std::span glyphs(&shaped.glyphs[cluster.glyphs], cluster.glyphs_end - cluster.glyphs);
                if (std::ranges::count(glyphs, 0U, &ShapedGlyph::number) == 0) {
                    continue;
                }
                for (const char32_t one : text->text.mid(cluster.from, cluster.to - cluster.from).toUcs4()) {
                    if (!cluster.face->has(one) && !ignorable(one)) {
                        missing.insert(one);
                    }
                }
            }
        }
    }
    return {missing.begin(), missing.end()};
}

QPainterPath outline_of(const TextItem& item, const Fonts& fonts) {
    const ShapedText& shaped = fonts.shape(item.text, item.style.bold);
    const double size = item.style.size;
    const double width = shaped.width * size;
    const double x = item.align == Align::left ? 0 : item.align == Align::center ? -width / 2 : -width;
    QPainterPath path;
    path.setFillRule(Qt::WindingFill);
    for (const ShapedCluster& cluster : shaped.clusters) {
        for (std::size_t i = cluster.glyphs; i < cluster.glyphs_end; ++i) {
            const ShapedGlyph& glyph = shaped.glyphs[i];
            QTransform place = QTransform::fromTranslate(x + glyph.x * size, -glyph.y * size);
            place.scale(size, size);
            path.addPath(place.map(cluster.face->outline(glyph.number)));
        }
    }
    QTransform to_page = QTransform::fromTranslate(item.at.x(), item.at.y());
    to_page.rotate(-item.rotation);
    return to_page.map(path);
}

} // namespace ponderscope::figure
