// SPDX-License-Identifier: GPL-3.0-or-later
// PDF by ISO 32000-1 (PDF 1.7). Section numbers below refer to this standard.
#include "views/figure/writer/backends.h"

#include "core/base/error.h"

#include <QCryptographicHash>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace ponderscope::figure {
namespace {

/// Compresses to zlib's format, which FlateDecode (7.4.4) reads. Qt's first four bytes are the length.
QByteArray deflate(const QByteArray& bytes) {
    return qCompress(bytes, 9).mid(4);
}

QByteArray hex(std::uint32_t value, int digits) {
    return QByteArray::number(value, 16).toUpper().rightJustified(digits, '0');
}

QByteArray utf16_hex(const QString& text) {
    QByteArray result;
    for (const QChar unit : text) {
        result += hex(unit.unicode(), 4);
    }
    return result;
}

/// Indirect objects in the order of their numbers, which start at 1.
class Objects {
public:
    int reserve() { return add({}); }
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
        // The identifier (14.4) is a digest of the content, so that equal figures give equal files.
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

/// A face in the file: its resource and the codes of its glyphs.
struct EmbeddedFont {
    UsedFace used;
    QByteArray name; ///< F1, F2, ...
    FontSubset subset;
};

/// The ToUnicode map from codes to text (9.10.3).
QByteArray to_unicode(const EmbeddedFont& font) {
    std::map<std::uint32_t, QString> by_code;
    for (const auto& [glyph, text] : font.used.glyphs) {
        if (glyph != 0 && !text.isEmpty()) {
            by_code.emplace(font.subset.codes.at(glyph), text);
        }
    }
    QByteArray map = "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n"
                     "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n"
                     "/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n"
                     "1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n";
    auto at = by_code.begin();
    while (at != by_code.end()) {
        const auto count = std::min<std::ptrdiff_t>(100, std::distance(at, by_code.end()));
        map += QByteArray::number(static_cast<int>(count)) + " beginbfchar\n";
        for (std::ptrdiff_t i = 0; i < count; ++i, ++at) {
            map += "<" + hex(at->first, 4) + "> <" + utf16_hex(at->second) + ">\n";
        }
        map += "endbfchar\n";
    }
    return map + "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n";
}

/// The six letters of a subset's name (9.6.4), from a digest of the subset.
QByteArray subset_tag(const QByteArray& font) {
    const QByteArray digest = QCryptographicHash::hash(font, QCryptographicHash::Sha256);
    QByteArray tag;
    for (int i = 0; i < 6; ++i) {
        tag += static_cast<char>('A' + static_cast<unsigned char>(digest[i]) % 26);
    }
    return tag;
}

int add_font(Objects& objects, const EmbeddedFont& font) {
    const FontFace& face = *font.used.face;
    const auto units = [](double em) { return QByteArray::number(qRound(em * 1000)); };
    const int file = objects.add_stream(
        font.subset.font, face.is_cff() ? QByteArray("/Subtype /CIDFontType0C ")
                                        : "/Length1 " + QByteArray::number(font.subset.font.size()) + " ");
    const QByteArray name = "/" + subset_tag(font.subset.font) + "+" + face.name();
    std::map<std::uint32_t, std::uint32_t> glyphs; // by code
    QRectF box;
    for (const auto& [glyph, code] : font.subset.codes) {
        glyphs.emplace(code, glyph);
        box |= face.outline(glyph).boundingRect();
    }
    const int descriptor =
        objects.add("<< /Type /FontDescriptor /FontName " + name + " /Flags 4 /FontBBox [" +
                    units(box.left()) + " " + units(-box.bottom()) + " " + units(box.right()) + " " +
                    units(-box.top()) + "] /ItalicAngle 0 /Ascent " + units(face.ascender()) + " /Descent " +
                    units(face.descender()) + " /CapHeight " + units(face.cap_height()) + " /StemV 80 /" +
                    (face.is_cff() ? "FontFile3 " : "FontFile2 ") + reference(file) + " >>");
    QByteArray widths;
    std::uint32_t next = 0;
    for (const auto& [code, glyph] : glyphs) { // widths of consecutive codes follow the first code
        widths += widths.isEmpty() ? QByteArray::number(code) + " ["
                  : code == next   ? QByteArray(" ")
                                   : "] " + QByteArray::number(code) + " [";
        widths += number(face.advance(glyph) * 1000, 2);
        next = code + 1;
    }
    const int descendant = objects.add(
        QByteArray("<< /Type /Font /Subtype ") + (face.is_cff() ? "/CIDFontType0" : "/CIDFontType2") +
        " /BaseFont " + name +
        " /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor " +
        reference(descriptor) + " /DW 1000 /W [" + widths + "]]" +
        (face.is_cff() ? "" : " /CIDToGIDMap /Identity") + " >>");
    const int unicode = objects.add_stream(to_unicode(font));
    return objects.add("<< /Type /Font /Subtype /Type0 /BaseFont " + name +
                       " /Encoding /Identity-H /DescendantFonts [" + reference(descendant) + "] /ToUnicode " +
                       reference(unicode) + " >>");
}

/// An image with transparent pixels gets a mask (11.6.5.3).
int add_image(Objects& objects, const QImage& source) {
    const QImage image = source.convertToFormat(QImage::Format_RGBA8888);
    QByteArray rows;
    QByteArray mask;
    rows.reserve(static_cast<qsizetype>(image.width()) * image.height() * 3);
    for (int y = 0; y < image.height(); ++y) {
        const auto* pixel = reinterpret_cast<const char*>(image.constScanLine(y));
        for (int x = 0; x < image.width(); ++x, pixel += 4) {
            rows.append(pixel, 3);
            mask.append(pixel[3]);
        }
    }
    const QByteArray entries = "/Type /XObject /Subtype /Image /Width " + QByteArray::number(image.width()) +
                               " /Height " + QByteArray::number(image.height()) +
                               " /BitsPerComponent 8 /Interpolate false";
    const QByteArray soft =
        source.hasAlphaChannel()
            ? " /SMask " + reference(objects.add_stream(mask, entries + " /ColorSpace /DeviceGray "))
            : QByteArray();
    return objects.add_stream(rows, entries + soft + " /ColorSpace /DeviceRGB ");
}

/// Writes the page's operators. Writes a colour only if it changes, so that 20,000 cells need few bytes.
class Content {
public:
    Content(Objects& objects, const Fonts& fonts, const std::vector<EmbeddedFont>& embedded)
        : objects_(objects), fonts_(fonts), embedded_(embedded) {}

    void operator()(const RectItem& item) {
        if (item.radius > 0) {
            draw(rounded_rect(item.rect, item.radius), item.fill, item.stroke);
        } else if (begin(item.fill, item.stroke)) {
            out_ += box(item.rect) + " re\n" + paint_operator(item.fill, item.stroke);
        }
    }
    void operator()(const PathItem& item) { draw(item.path, item.fill, item.stroke); }
    void operator()(const TextItem& item) {
        fill_color(item.style.color);
        const ShapedText& shaped = fonts_.shape(item.text, item.style.bold);
        const double width = shaped.width * item.style.size;
        const double shift = item.align == Align::left     ? 0
                             : item.align == Align::center ? -width / 2
                                                           : -width;
        const double angle = item.rotation * 3.14159265358979323846 / 180;
        const double c = std::cos(angle);
        const double s = std::sin(angle);
        // The page is flipped, so that y grows downwards as in the list. The text matrix flips letters back.
        out_ += "BT";
        const EmbeddedFont* font = nullptr;
        QByteArray shown;   // codes and moves of a text in one font on one line
        bool moved = false; // whether `shown` has moves
        double pen = 0;     // position of the next code, em
        double raised = 1e9;
        bool open = false; // whether marked content is open
        const auto flush = [&] {
            if (!shown.isEmpty()) {
                out_ += moved ? " [<" + shown + ">] TJ" : " <" + shown + "> Tj";
            }
            shown.clear();
            moved = false;
        };
        const std::vector<ShapedCluster>& clusters = shaped.clusters;
        std::size_t said = 0; // end of the word that is being written
        for (std::size_t at = 0; at < clusters.size(); ++at) {
            const ShapedCluster& cluster = clusters[at];
            const EmbeddedFont& wanted = font_of(cluster.face);
            if (&wanted != font) {
                flush();
                font = &wanted;
                raised = 1e9;
                out_ += " /" + font->name + " " + number(item.style.size) + " Tf";
            }
            QString word; // replacement text of a word; empty: not needed
            if (at >= said) {
                said = end_of_word(item.text, clusters, at);
                word = unsaid(item.text, shaped, at, said);
            }
            for (std::size_t i = cluster.glyphs; i < cluster.glyphs_end; ++i) {
                const ShapedGlyph& glyph = shaped.glyphs[i];
                if (!word.isEmpty()) {
                    flush();
                }
                if (std::abs(glyph.y - raised) > 1e-6) {
                    flush();
                    const double x = shift + glyph.x * item.style.size;
                    const double y = glyph.y * item.style.size;
                    out_ += " " + number(c, 5) + " " + number(-s, 5) + " " + number(-s, 5) + " " +
                            number(-c, 5) + " " + number(item.at.x() + x * c - y * s) + " " +
                            number(item.at.y() - x * s - y * c) + " Tm";
                    pen = glyph.x;
                    raised = glyph.y;
                }
                if (!word.isEmpty()) {
                    out_ += " /Span << /ActualText <FEFF" + utf16_hex(word) + "> >> BDC";
                    open = true;
                    word.clear();
                }
                if (std::abs(glyph.x - pen) > 1e-5) {
                    shown += "> " + number((pen - glyph.x) * 1000, 2) + " <";
                    moved = true;
                }
                shown += hex(font->subset.codes.at(glyph.number), 4);
                pen = glyph.x + cluster.face->advance(glyph.number);
            }
            if (open && at + 1 == said) {
                flush();
                out_ += " EMC";
                open = false;
            }
        }
        flush();
        out_ += " ET\n";
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
        out_ += "q " + box(item.rect) + " re W n\n";
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
            for (const auto& [alphas, key] :
                 {std::pair(&fill_alphas_, "ca"), std::pair(&stroke_alphas_, "CA")}) {
                for (const auto& [per_mille, name] : *alphas) {
                    text += " /" + name + " << /" + key + " " + number(per_mille / 1000.0) + " >>";
                }
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
        std::optional<QRgb> fill, stroke; ///< empty: not set yet
        int fill_alpha = 1000;
        int stroke_alpha = 1000;
        QByteArray pen;
    };

    const EmbeddedFont& font_of(const FontFace* face) const {
        return *std::ranges::find_if(embedded_,
                                     [&](const EmbeddedFont& font) { return font.used.face == face; });
    }
    /// The end of a word: a space, or a change of direction.
    static std::size_t end_of_word(const QString& text, const std::vector<ShapedCluster>& clusters,
                                   std::size_t begin) {
        std::size_t end = begin + 1;
        while (end < clusters.size() && clusters[end].right_to_left == clusters[begin].right_to_left &&
               !text[clusters[end].from].isSpace() && !text[clusters[begin].from].isSpace()) {
            ++end;
        }
        return end;
    }
    /// The word as replacement text (ActualText, 14.9.4), if its glyphs map to other text (a syllable whose
    /// parts change places). For words from right to left, readers order the single letters themselves.
    QString unsaid(const QString& text, const ShapedText& shaped, std::size_t begin, std::size_t end) const {
        QString own;
        QString said;
        for (std::size_t at = begin; at < end; ++at) {
            const ShapedCluster& cluster = shaped.clusters[at];
            own += QStringView(text).mid(cluster.from, cluster.to - cluster.from);
            for (std::size_t i = cluster.glyphs; i < cluster.glyphs_end; ++i) {
                said += font_of(cluster.face).used.glyphs.at(shaped.glyphs[i].number);
            }
        }
        return shaped.clusters[begin].right_to_left || own == said ? QString() : own;
    }
    static QByteArray box(const QRectF& rect) {
        return number(rect.x()) + " " + number(rect.y()) + " " + number(rect.width()) + " " +
               number(rect.height());
    }
    static QByteArray components(const QColor& color) {
        return number(color.redF()) + " " + number(color.greenF()) + " " + number(color.blueF());
    }
    /// Sets the opacity of fills or strokes, if it has changed.
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
        if (state_.fill != color.rgb()) {
            out_ += components(color) + " rg\n";
            state_.fill = color.rgb();
        }
    }
    void stroke_style(const Stroke& stroke) {
        opacity(state_.stroke_alpha, stroke_alphas_, 's', stroke.color.alphaF());
        if (state_.stroke != stroke.color.rgb()) {
            out_ += components(stroke.color) + " RG\n";
            state_.stroke = stroke.color.rgb();
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
        out_ += path_data(path,
                          [](char letter, const QByteArray& points) { return points + " " + letter + "\n"; });
        out_ += paint_operator(fill, stroke);
    }

    Objects& objects_;
    const Fonts& fonts_;
    const std::vector<EmbeddedFont>& embedded_;
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
        throw Error(ErrorId::program_unexpected, "A figure contains a coordinate that is not a number.");
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

QByteArray path_data(const QPainterPath& path,
                     const std::function<QByteArray(char letter, const QByteArray& points)>& operation) {
    QByteArray text;
    for (int i = 0; i < path.elementCount();) {
        const QPainterPath::ElementType type = path.elementAt(i).type;
        const int end = i + (type == QPainterPath::CurveToElement ? 3 : 1);
        QByteArray points;
        for (; i < end; ++i) {
            points += " " + number(path.elementAt(i).x) + " " + number(path.elementAt(i).y);
        }
        text += operation("mlc"[type], points.mid(1));
    }
    return text;
}

std::vector<UsedFace> used_faces(const DisplayList& list, const Fonts& fonts) {
    std::vector<UsedFace> faces;
    for (const Item& item : list.items()) {
        const auto* text = std::get_if<TextItem>(&item);
        if (text == nullptr) {
            continue;
        }
        const ShapedText& shaped = fonts.shape(text->text, text->style.bold);
        for (const ShapedCluster& cluster : shaped.clusters) {
            auto used = std::ranges::find(faces, cluster.face, &UsedFace::face);
            if (used == faces.end()) {
                used = faces.insert(faces.end(), UsedFace{cluster.face, {}, {}, false, false});
            }
            (text->style.bold ? used->bold : used->regular) = true;
            const QString own = text->text.mid(cluster.from, cluster.to - cluster.from);
            for (const char32_t character : own.toUcs4()) {
                used->characters.insert(character);
            }
            // Of several glyphs, each maps to its own character, the first without one to the remaining text.
            QString rest = own;
            const bool single = cluster.glyphs_end == cluster.glyphs + 1;
            for (std::size_t i = cluster.glyphs; i < cluster.glyphs_end && !single; ++i) {
                for (const char32_t character : own.toUcs4()) {
                    const QString one = QString::fromUcs4(&character, 1);
                    if (used->face->glyph_of(character) == shaped.glyphs[i].number) {
                        used->glyphs.try_emplace(shaped.glyphs[i].number, one);
                        rest.remove(one);
                    }
                }
            }
            for (std::size_t i = cluster.glyphs; i < cluster.glyphs_end; ++i) {
                QString& said = used->glyphs[shaped.glyphs[i].number];
                if (said.isEmpty()) {
                    said = std::exchange(rest, QString());
                }
            }
        }
    }
    return faces;
}

QByteArray to_pdf(const DisplayList& list, const Fonts& fonts) {
    Objects objects;
    const int catalog = objects.reserve();
    const int pages = objects.reserve();
    const int page = objects.reserve();
    const int info = objects.add("<< /Producer (Ponderscope) >>");
    std::vector<EmbeddedFont> embedded;
    QByteArray font_entries;
    for (UsedFace& used : used_faces(list, fonts)) {
        std::set<std::uint32_t> glyphs;
        for (const auto& entry : used.glyphs) {
            glyphs.insert(entry.first);
        }
        FontSubset subset = used.face->subset(glyphs);
        const QByteArray name = "F" + QByteArray::number(static_cast<int>(embedded.size()) + 1);
        embedded.push_back({std::move(used), name, std::move(subset)});
        font_entries += " /" + name + " " + reference(add_font(objects, embedded.back()));
    }
    Content content(objects, fonts, embedded);
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
