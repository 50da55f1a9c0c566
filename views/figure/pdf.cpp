// SPDX-License-Identifier: GPL-3.0-or-later
// PDF as ISO 32000-1 (PDF 1.7) describes it; section numbers below are of that standard.
#include "views/figure/backends.h"

#include "core/base/error.h"

#include <QCryptographicHash>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace ponderscope::figure {
namespace {

/// zlib's format, which is what FlateDecode (7.4.4) reads; Qt puts four bytes of length in front of it.
QByteArray deflate(const QByteArray& bytes) {
    return qCompress(bytes, 9).mid(4);
}

QByteArray hex(std::uint32_t value, int digits) {
    return QByteArray::number(value, 16).toUpper().rightJustified(digits, '0');
}

QByteArray utf16_hex(char32_t character) {
    QByteArray result;
    for (const QChar unit : QString::fromUcs4(&character, 1)) {
        result += hex(unit.unicode(), 4);
    }
    return result;
}

/// Indirect objects in the order of their numbers, which start at 1.
class Objects {
public:
    int reserve() {
        bodies_.emplace_back();
        return static_cast<int>(bodies_.size());
    }
    void set(int number, QByteArray body) { bodies_[static_cast<std::size_t>(number - 1)] = std::move(body); }
    int add(QByteArray body) {
        bodies_.push_back(std::move(body));
        return static_cast<int>(bodies_.size());
    }
    int add_stream(const QByteArray& data, const QByteArray& entries = {}) {
        const QByteArray packed = deflate(data);
        return add("<< " + entries + "/Filter /FlateDecode /Length " + QByteArray::number(packed.size()) +
                   " >>\nstream\n" + packed + "\nendstream");
    }
    QByteArray file(int catalog, int info) const {
        QByteArray out("%PDF-1.7\n%\xE2\xE3\xCF\xD3\n");
        std::vector<qsizetype> offsets;
        for (std::size_t i = 0; i < bodies_.size(); ++i) {
            offsets.push_back(out.size());
            out += QByteArray::number(static_cast<int>(i) + 1) + " 0 obj\n" + bodies_[i] + "\nendobj\n";
        }
        const qsizetype xref = out.size();
        const QByteArray count = QByteArray::number(static_cast<int>(bodies_.size()) + 1);
        out += "xref\n0 " + count + "\n0000000000 65535 f \n";
        for (const qsizetype offset : offsets) {
            out += QByteArray::number(offset).rightJustified(10, '0') + " 00000 n \n";
        }
        // The identifier (14.4) is of the content, so that equal figures are equal files.
        const QByteArray id = QCryptographicHash::hash(out, QCryptographicHash::Md5).toHex().toUpper();
        out += "trailer\n<< /Size " + count + " /Root " + QByteArray::number(catalog) + " 0 R /Info " +
               QByteArray::number(info) + " 0 R /ID [<" + id + "> <" + id + ">] >>\nstartxref\n" +
               QByteArray::number(xref) + "\n%%EOF\n";
        return out;
    }

private:
    std::vector<QByteArray> bodies_;
};

QByteArray reference(int object) {
    return QByteArray::number(object) + " 0 R";
}

/// The code points of a subset, in the font's new numbers (9.10.3).
QByteArray to_unicode(const std::map<char32_t, std::uint32_t>& characters, const FontSubset& subset) {
    std::map<std::uint32_t, char32_t> by_glyph;
    for (const auto& [character, old] : characters) {
        by_glyph.emplace(subset.renumbered.at(old), character);
    }
    by_glyph.erase(0);
    QByteArray map = "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n"
                     "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n"
                     "/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n"
                     "1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n";
    auto at = by_glyph.begin();
    while (at != by_glyph.end()) {
        const auto count = std::min<std::ptrdiff_t>(100, std::distance(at, by_glyph.end()));
        map += QByteArray::number(static_cast<int>(count)) + " beginbfchar\n";
        for (std::ptrdiff_t i = 0; i < count; ++i, ++at) {
            map += "<" + hex(at->first, 4) + "> <" + utf16_hex(at->second) + ">\n";
        }
        map += "endbfchar\n";
    }
    return map + "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n";
}

/// Six letters that name the subset (9.6.4), from what is in it.
QByteArray subset_tag(const QByteArray& font) {
    const QByteArray digest = QCryptographicHash::hash(font, QCryptographicHash::Sha256);
    QByteArray tag;
    for (int i = 0; i < 6; ++i) {
        tag += static_cast<char>('A' + static_cast<unsigned char>(digest[i]) % 26);
    }
    return tag;
}

int add_font(Objects& objects, const FontFace& face, const std::map<char32_t, std::uint32_t>& characters,
             const FontSubset& subset) {
    const TrueType& tables = face.tables();
    const auto units = [&](int value) {
        return QByteArray::number(qRound(value * 1000.0 / tables.units_per_em()));
    };
    const int file =
        objects.add_stream(subset.font, "/Length1 " + QByteArray::number(subset.font.size()) + " ");
    const QByteArray name = "/" + subset_tag(subset.font) + "+" + face.name();
    QByteArray box;
    for (const int edge : tables.bounding_box()) {
        box += units(edge) + " ";
    }
    const int descriptor = objects.add(
        "<< /Type /FontDescriptor /FontName " + name + " /Flags 4 /FontBBox [" + box.trimmed() +
        "] /ItalicAngle 0 /Ascent " + units(tables.ascender()) + " /Descent " + units(tables.descender()) +
        " /CapHeight " + units(tables.cap_height()) + " /StemV 80 /FontFile2 " + reference(file) + " >>");
    QByteArray widths;
    for (const std::uint32_t old : subset.glyphs) {
        widths += number(tables.advance(old) * 1000.0 / tables.units_per_em(), 2) + " ";
    }
    const int descendant = objects.add(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont " + name +
        " /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor " +
        reference(descriptor) + " /DW 1000 /W [0 [" + widths.trimmed() + "]] /CIDToGIDMap /Identity >>");
    const int unicode = objects.add_stream(to_unicode(characters, subset));
    return objects.add("<< /Type /Font /Subtype /Type0 /BaseFont " + name +
                       " /Encoding /Identity-H /DescendantFonts [" + reference(descendant) + "] /ToUnicode " +
                       reference(unicode) + " >>");
}

int add_image(Objects& objects, const QImage& source) {
    const QImage image = source.convertToFormat(QImage::Format_RGB888);
    QByteArray rows;
    rows.reserve(static_cast<qsizetype>(image.width()) * image.height() * 3);
    for (int y = 0; y < image.height(); ++y) {
        rows.append(reinterpret_cast<const char*>(image.constScanLine(y)),
                    static_cast<qsizetype>(image.width()) * 3);
    }
    return objects.add_stream(rows, "/Type /XObject /Subtype /Image /Width " +
                                        QByteArray::number(image.width()) + " /Height " +
                                        QByteArray::number(image.height()) +
                                        " /ColorSpace /DeviceRGB /BitsPerComponent 8 /Interpolate false ");
}

/// Writes the page's operators; remembers what is set, so that 20,000 cells of a few colours stay small.
class Content {
public:
    Content(Objects& objects, const Fonts& fonts, const FontSubset* subsets)
        : objects_(objects), fonts_(fonts), subsets_(subsets) {}

    void operator()(const RectItem& item) {
        if (item.radius > 0) {
            draw(rounded_rect(item.rect, item.radius), item.fill, item.stroke);
        } else if (begin(item.fill, item.stroke)) {
            out_ += number(item.rect.x()) + " " + number(item.rect.y()) + " " + number(item.rect.width()) +
                    " " + number(item.rect.height()) + " re\n" + paint_operator(item.fill, item.stroke);
        }
    }
    void operator()(const PathItem& item) { draw(item.path, item.fill, item.stroke); }
    void operator()(const TextItem& item) {
        fill_color(item.style.color);
        const FontFace& face = fonts_.face(item.style.bold);
        const double width = fonts_.width(item.text, item.style);
        const double shift = item.align == Align::left     ? 0
                             : item.align == Align::center ? -width / 2
                                                           : -width;
        const double angle = item.rotation * 3.14159265358979323846 / 180;
        const double c = std::cos(angle);
        const double s = std::sin(angle);
        // The page is turned upside down, so that y grows downwards as in the list; the text matrix turns
        // letters upright again.
        out_ += "BT /F" + QByteArray::number(item.style.bold ? 2 : 1) + " " + number(item.style.size) +
                " Tf " + number(c, 5) + " " + number(-s, 5) + " " + number(-s, 5) + " " + number(-c, 5) +
                " " + number(item.at.x() + shift * c) + " " + number(item.at.y() - shift * s) + " Tm <";
        const FontSubset& subset = subsets_[item.style.bold ? 1 : 0];
        for (const Glyph& glyph : face.glyphs(item.text)) {
            out_ += hex(subset.renumbered.at(glyph.number), 4);
        }
        out_ += "> Tj ET\n";
    }
    void operator()(const ImageItem& item) {
        opacity(state_.fill_alpha, fill_alphas_, 'f', 1);
        const QByteArray name = "I" + QByteArray::number(static_cast<int>(images_.size()) + 1);
        images_.emplace_back(name, add_image(objects_, item.image));
        out_ += "q " + number(item.target.width()) + " 0 0 " + number(-item.target.height()) + " " +
                number(item.target.x()) + " " + number(item.target.bottom()) + " cm /" + name + " Do Q\n";
    }
    void operator()(const ClipBegin& item) {
        stack_.push_back(state_);
        out_ += "q " + number(item.rect.x()) + " " + number(item.rect.y()) + " " + number(item.rect.width()) +
                " " + number(item.rect.height()) + " re W n\n";
    }
    void operator()(const ClipEnd&) {
        out_ += "Q\n";
        state_ = stack_.back();
        stack_.pop_back();
    }

    QByteArray operators(double height) const { return "1 0 0 -1 0 " + number(height) + " cm\n" + out_; }
    QByteArray resources() const {
        QByteArray text;
        if (!fill_alphas_.empty() || !stroke_alphas_.empty()) {
            text += " /ExtGState <<";
            for (const auto& [per_mille, name] : fill_alphas_) {
                text += " /" + name + " << /ca " + number(per_mille / 1000.0) + " >>";
            }
            for (const auto& [per_mille, name] : stroke_alphas_) {
                text += " /" + name + " << /CA " + number(per_mille / 1000.0) + " >>";
            }
            text += " >>";
        }
        if (!images_.empty()) {
            text += " /XObject <<";
            for (const auto& [name, object] : images_) {
                text += " /" + name + " " + reference(object);
            }
            text += " >>";
        }
        return text;
    }

private:
    struct State {
        QRgb fill = 0;
        QRgb stroke = 0;
        bool fill_known = false;
        bool stroke_known = false;
        int fill_alpha = 1000;
        int stroke_alpha = 1000;
        QByteArray pen;
    };

    static QByteArray components(const QColor& color) {
        return number(color.redF()) + " " + number(color.greenF()) + " " + number(color.blueF());
    }
    /// Opacity of fills and of strokes are one parameter each, and stay until they are set again.
    void opacity(int& known, std::map<int, QByteArray>& used, char prefix, double value) {
        const int per_mille = qRound(value * 1000);
        if (per_mille == known) {
            return;
        }
        QByteArray& name = used[per_mille];
        if (name.isEmpty()) {
            name = prefix + QByteArray::number(per_mille);
        }
        out_ += "/" + name + " gs\n";
        known = per_mille;
    }
    void fill_color(const QColor& color) {
        opacity(state_.fill_alpha, fill_alphas_, 'f', color.alphaF());
        if (!state_.fill_known || state_.fill != color.rgb()) {
            out_ += components(color) + " rg\n";
            state_.fill = color.rgb();
            state_.fill_known = true;
        }
    }
    void stroke_style(const Stroke& stroke) {
        opacity(state_.stroke_alpha, stroke_alphas_, 's', stroke.color.alphaF());
        if (!state_.stroke_known || state_.stroke != stroke.color.rgb()) {
            out_ += components(stroke.color) + " RG\n";
            state_.stroke = stroke.color.rgb();
            state_.stroke_known = true;
        }
        QByteArray pen = number(stroke.width) + " w " + (stroke.round ? "1 J 1 j" : "0 J 0 j") + " [";
        for (const double length : stroke.dash) {
            pen += number(length) + " ";
        }
        pen = pen.trimmed() + "] 0 d\n";
        if (pen != state_.pen) {
            out_ += pen;
            state_.pen = pen;
        }
    }
    bool begin(const QColor& fill, const Stroke& stroke) {
        if (fill.isValid()) {
            fill_color(fill);
        }
        if (stroke.color.isValid()) {
            stroke_style(stroke);
        }
        return fill.isValid() || stroke.color.isValid();
    }
    static QByteArray paint_operator(const QColor& fill, const Stroke& stroke) {
        return fill.isValid() ? (stroke.color.isValid() ? "B\n" : "f\n") : "S\n";
    }
    void draw(const QPainterPath& path, const QColor& fill, const Stroke& stroke) {
        if (path.isEmpty() || !begin(fill, stroke)) {
            return;
        }
        const auto point = [&](int i) {
            const QPainterPath::Element element = path.elementAt(i);
            return number(element.x) + " " + number(element.y) + " ";
        };
        for (int i = 0; i < path.elementCount(); ++i) {
            switch (path.elementAt(i).type) {
            case QPainterPath::MoveToElement:
                out_ += point(i) + "m\n";
                break;
            case QPainterPath::LineToElement:
                out_ += point(i) + "l\n";
                break;
            case QPainterPath::CurveToElement:
                out_ += point(i) + point(i + 1) + point(i + 2) + "c\n";
                i += 2;
                break;
            case QPainterPath::CurveToDataElement:
                break;
            }
        }
        out_ += paint_operator(fill, stroke);
    }

    Objects& objects_;
    const Fonts& fonts_;
    const FontSubset* subsets_;
    QByteArray out_;
    State state_;
    std::vector<State> stack_;
    std::map<int, QByteArray> fill_alphas_;
    std::map<int, QByteArray> stroke_alphas_;
    std::vector<std::pair<QByteArray, int>> images_;
};

} // namespace

QByteArray number(double value, int decimals) {
    if (!std::isfinite(value)) {
        throw Error("A figure contains a coordinate that is not a number.");
    }
    QByteArray text = QByteArray::number(value, 'f', decimals);
    if (text.contains('.')) {
        while (text.endsWith('0')) {
            text.chop(1);
        }
        if (text.endsWith('.')) {
            text.chop(1);
        }
    }
    return text == "-0" ? QByteArray("0") : text;
}

UsedCharacters used_characters(const DisplayList& list, const Fonts& fonts) {
    UsedCharacters used;
    for (const Item& item : list.items()) {
        if (const auto* text = std::get_if<TextItem>(&item)) {
            for (const Glyph& glyph : fonts.face(text->style.bold).glyphs(text->text)) {
                used.faces[text->style.bold ? 1 : 0].emplace(glyph.character, glyph.number);
            }
        }
    }
    return used;
}

QByteArray to_pdf(const DisplayList& list, const Fonts& fonts) {
    const UsedCharacters used = used_characters(list, fonts);
    Objects objects;
    const int catalog = objects.reserve();
    const int pages = objects.reserve();
    const int page = objects.reserve();
    const int info = objects.add("<< /Producer (Ponderscope) >>");
    FontSubset subsets[2];
    QByteArray font_entries;
    for (int bold = 0; bold < 2; ++bold) {
        const auto& characters = used.faces[bold];
        if (characters.empty()) {
            continue;
        }
        const FontFace& face = fonts.face(bold == 1);
        subsets[bold] = face.tables().subset(characters);
        font_entries += " /F" + QByteArray::number(bold + 1) + " " +
                        reference(add_font(objects, face, characters, subsets[bold]));
    }
    Content content(objects, fonts, subsets);
    for (const Item& item : list.items()) {
        std::visit(content, item);
    }
    const int stream = objects.add_stream(content.operators(list.size().height()));
    objects.set(catalog, "<< /Type /Catalog /Pages " + reference(pages) + " >>");
    objects.set(pages, "<< /Type /Pages /Kids [" + reference(page) + "] /Count 1 >>");
    objects.set(page, "<< /Type /Page /Parent " + reference(pages) + " /MediaBox [0 0 " +
                          number(list.size().width()) + " " + number(list.size().height()) +
                          "] /Resources << /Font <<" + font_entries + " >>" + content.resources() +
                          " >> /Contents " + reference(stream) + " >>");
    return objects.file(catalog, info);
}

} // namespace ponderscope::figure
