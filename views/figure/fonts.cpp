// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/fonts.h"

#include "core/base/error.h"

#include <QFont>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QTransform>

#include <set>
#include <utility>

namespace ponderscope::figure {
namespace {

[[noreturn]] void unusable(const QString& family, const char* why) {
    throw EnvironmentError("The font \"" + family.toStdString() + "\" cannot be put into a figure: " + why +
                           "; choose another, such as " + default_family + ".");
}

/// The first of these styles that the family has; empty: none of them.
QString style_of(const QString& family, std::initializer_list<const char*> wanted) {
    const QStringList styles = QFontDatabase::styles(family);
    for (const char* style : wanted) {
        if (styles.contains(QLatin1String(style))) {
            return QLatin1String(style);
        }
    }
    return {};
}

QRawFont raw_font(const QString& family, const QString& style) {
    QFont font = QFontDatabase::font(family, style, 12);
    font.setHintingPreference(QFont::PreferNoHinting);
    font.setPixelSize(2048); // units per em of most: outlines come out in font units
    QRawFont raw = QRawFont::fromFont(font);
    if (!raw.isValid() || raw.familyName() != family) {
        throw EnvironmentError("The font \"" + family.toStdString() +
                               "\", which the figure is set in, was not found on this machine; install it" +
                               (family == QLatin1String(default_family)
                                    ? " (package fonts-dejavu-core)."
                                    : std::string(", or choose another, such as ") + default_family + "."));
    }
    // What is embedded is cut from the outlines in `glyf`; a variable font keeps only one of its shapes
    // there.
    if (raw.fontTable("glyf").isEmpty()) {
        unusable(family, "it has no TrueType outlines");
    }
    if (!raw.fontTable("fvar").isEmpty()) {
        unusable(family, "it is a variable font");
    }
    const QByteArray os2 = raw.fontTable("OS/2");
    constexpr int restricted = 0x0002; // fsType: embedding needs the owner's leave
    if (os2.size() >= 10 && (static_cast<unsigned char>(os2[9]) & restricted) != 0) {
        unusable(family, "its licence forbids embedding");
    }
    return raw;
}

/// A PostScript name from the family's: letters and digits.
QByteArray postscript_name(const QString& family, bool bold) {
    QByteArray name;
    for (const QChar one : family) {
        if (one.unicode() < 128 && one.isLetterOrNumber()) {
            name += one.toLatin1();
        }
    }
    return (name.isEmpty() ? QByteArray("Font") : name) + (bold ? "-Bold" : "");
}

} // namespace

FontFace::FontFace(QRawFont raw, QByteArray name) : raw_(std::move(raw)), name_(std::move(name)) {
    TrueTypeTables tables;
    tables.head = raw_.fontTable("head");
    tables.hhea = raw_.fontTable("hhea");
    tables.maxp = raw_.fontTable("maxp");
    tables.hmtx = raw_.fontTable("hmtx");
    tables.loca = raw_.fontTable("loca");
    tables.glyf = raw_.fontTable("glyf");
    tables.os2 = raw_.fontTable("OS/2");
    tables_ = std::make_shared<const TrueType>(std::move(tables));
}

std::vector<Glyph> FontFace::glyphs(const QString& text) const {
    std::vector<Glyph> result;
    result.reserve(static_cast<std::size_t>(text.size()));
    const QList<uint> characters = text.toUcs4();
    for (const uint value : characters) {
        const auto character = static_cast<char32_t>(value);
        auto found = cache_.find(character);
        if (found == cache_.end()) {
            const QList<quint32> numbers = raw_.glyphIndexesForString(QString::fromUcs4(&character, 1));
            Glyph glyph;
            glyph.number = numbers.isEmpty() ? 0 : numbers.front();
            glyph.character = character;
            glyph.advance = static_cast<double>(tables_->advance(glyph.number)) / tables_->units_per_em();
            found = cache_.emplace(character, glyph).first;
        }
        result.push_back(found->second);
    }
    return result;
}

double FontFace::width(const QString& text) const {
    double sum = 0;
    for (const Glyph& glyph : glyphs(text)) {
        sum += glyph.advance;
    }
    return sum;
}

QPainterPath FontFace::outline(std::uint32_t glyph) const {
    const double scale = 1.0 / raw_.pixelSize();
    return QTransform::fromScale(scale, scale).map(raw_.pathForGlyph(glyph));
}

bool FontFace::has(char32_t character) const {
    return glyphs(QString::fromUcs4(&character, 1)).front().number != 0;
}

Fonts::Fonts(QString family, FontFace regular, FontFace bold)
    : family_(std::move(family)), regular_(std::move(regular)), bold_(std::move(bold)) {}

QStringList Fonts::families() {
    QStringList all;
    const QStringList installed = QFontDatabase::families();
    for (const QString& family : installed) {
        if (QFontDatabase::isSmoothlyScalable(family) && !QFontDatabase::isPrivateFamily(family)) {
            all << family;
        }
    }
    return all;
}

Fonts Fonts::load(const QString& family) {
    if (!qobject_cast<QGuiApplication*>(QCoreApplication::instance())) {
        throw EnvironmentError("Figures need a QGuiApplication before fonts can be loaded.");
    }
    const QString regular = style_of(family, {"Book", "Regular", "Roman", "Normal", "Medium"});
    const QString bold = style_of(family, {"Bold", "Demi Bold", "SemiBold", "Semibold"});
    // Without a bold face the regular one stands in: a thickened one would not be what is embedded.
    return Fonts(family, FontFace(raw_font(family, regular), postscript_name(family, false)),
                 bold.isEmpty() ? FontFace(raw_font(family, regular), postscript_name(family, false))
                                : FontFace(raw_font(family, bold), postscript_name(family, true)));
}

double Fonts::width(const QString& text, const TextStyle& style) const {
    return face(style.bold).width(text) * style.size;
}

double Fonts::ascent(const TextStyle& style) const {
    const TrueType& tables = face(style.bold).tables();
    return style.size * tables.ascender() / tables.units_per_em();
}

double Fonts::descent(const TextStyle& style) const {
    const TrueType& tables = face(style.bold).tables();
    return -style.size * tables.descender() / tables.units_per_em();
}

double Fonts::cap_height(const TextStyle& style) const {
    const TrueType& tables = face(style.bold).tables();
    return style.size * tables.cap_height() / tables.units_per_em();
}

double Fonts::x_height(const TextStyle& style) const {
    const TrueType& tables = face(style.bold).tables();
    return style.size * tables.x_height() / tables.units_per_em();
}

QString Fonts::elided(const QString& text, const TextStyle& style, double width) const {
    if (this->width(text, style) <= width) {
        return text;
    }
    const QString dots = QStringLiteral("…");
    QString kept;
    double used = this->width(dots, style);
    for (const uint value : text.toUcs4()) {
        const auto character = static_cast<char32_t>(value);
        const QString next = QString::fromUcs4(&character, 1);
        used += this->width(next, style);
        if (used > width) {
            break;
        }
        kept += next;
    }
    return kept + dots;
}

std::vector<char32_t> missing_characters(const DisplayList& list, const Fonts& fonts) {
    std::set<char32_t> missing;
    for (const Item& item : list.items()) {
        if (const auto* text = std::get_if<TextItem>(&item)) {
            for (const Glyph& glyph : fonts.face(text->style.bold).glyphs(text->text)) {
                if (glyph.number == 0) {
                    missing.insert(glyph.character);
                }
            }
        }
    }
    return {missing.begin(), missing.end()};
}

QPainterPath outline_of(const TextItem& item, const Fonts& fonts) {
    const FontFace& face = fonts.face(item.style.bold);
    const double width = fonts.width(item.text, item.style);
    double x = item.align == Align::left ? 0 : item.align == Align::center ? -width / 2 : -width;
    QPainterPath path;
    path.setFillRule(Qt::WindingFill);
    for (const Glyph& glyph : face.glyphs(item.text)) {
        QTransform place = QTransform::fromTranslate(x, 0);
        place.scale(item.style.size, item.style.size);
        path.addPath(place.map(face.outline(glyph.number)));
        x += glyph.advance * item.style.size;
    }
    QTransform to_page = QTransform::fromTranslate(item.at.x(), item.at.y());
    to_page.rotate(-item.rotation);
    return to_page.map(path);
}

} // namespace ponderscope::figure
