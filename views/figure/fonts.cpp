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

constexpr auto family = "DejaVu Sans";

QRawFont raw_font(const QString& style) {
    QFont font = QFontDatabase::font(QString::fromLatin1(family), style, 12);
    font.setHintingPreference(QFont::PreferNoHinting);
    font.setPixelSize(2048); // DejaVu's units per em: outlines come out in font units
    QRawFont raw = QRawFont::fromFont(font);
    if (!raw.isValid() || raw.familyName() != QLatin1String(family)) {
        throw EnvironmentError(
            "The font DejaVu Sans, which figures are set in, was not found on this machine; "
            "install the package fonts-dejavu-core.");
    }
    return raw;
}

} // namespace

FontFace::FontFace(QRawFont raw, bool bold) : raw_(std::move(raw)), bold_(bold) {
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

Fonts::Fonts(FontFace regular, FontFace bold) : regular_(std::move(regular)), bold_(std::move(bold)) {}

Fonts Fonts::load() {
    if (!qobject_cast<QGuiApplication*>(QCoreApplication::instance())) {
        throw EnvironmentError("Figures need a QGuiApplication before fonts can be loaded.");
    }
    return Fonts(FontFace(raw_font(QStringLiteral("Book")), false),
                 FontFace(raw_font(QStringLiteral("Bold")), true));
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
