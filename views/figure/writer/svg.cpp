// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/writer/backends.h"

namespace ponderscope::figure {
namespace {

/// Text of an XML 1.0 document: markup escaped, characters that XML forbids replaced.
QByteArray escaped(const QString& text) {
    QString clean;
    for (const uint value : text.toUcs4()) {
        const bool allowed = value == 0x9 || value == 0xA || value == 0xD ||
                             (value >= 0x20 && value <= 0xD7FF) || (value >= 0xE000 && value <= 0xFFFD) ||
                             (value >= 0x10000 && value <= 0x10FFFF);
        const auto character = static_cast<char32_t>(allowed ? value : 0xFFFD);
        clean += QString::fromUcs4(&character, 1);
    }
    return clean.toHtmlEscaped().toUtf8();
}

/// A font name in CSS quotes in XML.
QByteArray css_name(const QString& family) {
    QByteArray name;
    for (const QChar one : family) {
        name +=
            one.isLetterOrNumber() || one == u' ' || one == u'-' ? QString(one).toUtf8() : QByteArray("_");
    }
    return "'" + name + "'";
}

class Writer {
public:
    explicit Writer(const Fonts& fonts) : fonts_(fonts) {}

    void operator()(const RectItem& item) {
        out_ += "<rect" + box(item.rect);
        if (item.radius > 0) {
            out_ += " rx=\"" + number(item.radius) + "\"";
        }
        out_ += look(item.fill, item.stroke) + "/>\n";
    }
    void operator()(const PathItem& item) {
        if (item.path.isEmpty()) {
            return;
        }
        const QByteArray d = path_data(item.path, [](char letter, const QByteArray& points) {
            return QByteArray(1, letter).toUpper() + points;
        });
        out_ += "<path d=\"" + d + "\"" + look(item.fill, item.stroke) + "/>\n";
    }
    void operator()(const TextItem& item) {
        out_ += "<text x=\"" + number(item.at.x()) + "\" y=\"" + number(item.at.y()) + "\" font-size=\"" +
                number(item.style.size) + "\"";
        if (item.style.bold) {
            out_ += " font-weight=\"bold\"";
        }
        const ShapedText& shaped = fonts_.shape(item.text, item.style.bold);
        // A line from right to left starts at its right end.
        if (shaped.right_to_left) {
            out_ += " direction=\"rtl\"";
        }
        if (item.align == Align::center) {
            out_ += " text-anchor=\"middle\"";
        } else if ((item.align == Align::right) != shaped.right_to_left) {
            out_ += " text-anchor=\"end\"";
        }
        if (item.rotation != 0) {
            out_ += " transform=\"rotate(" + number(-item.rotation) + " " + number(item.at.x()) + " " +
                    number(item.at.y()) + ")\"";
        }
        out_ += " textLength=\"" + number(shaped.width * item.style.size) +
                "\" lengthAdjust=\"spacingAndGlyphs\"" + fill(item.style.color) + ">" + escaped(item.text) +
                "</text>\n";
    }
    void operator()(const ImageItem& item) {
        out_ += "<image" + box(item.target) +
                " preserveAspectRatio=\"none\" "
                "style=\"image-rendering:optimizeSpeed;image-rendering:pixelated\" "
                "xlink:href=\"" +
                "data:image/png;base64," + png_of(item.image).toBase64() + "\"/>\n";
    }
    void operator()(const ClipBegin& item) {
        const QByteArray id = "c" + QByteArray::number(++clips_);
        out_ += "<clipPath id=\"" + id + "\"><rect" + box(item.rect) + "/></clipPath>\n<g clip-path=\"url(#" +
                id + ")\">\n";
    }
    void operator()(const ClipEnd&) { out_ += "</g>\n"; }

    [[nodiscard]] const QByteArray& body() const { return out_; }

private:
    static QByteArray box(const QRectF& rect) {
        return " x=\"" + number(rect.x()) + "\" y=\"" + number(rect.y()) + "\" width=\"" +
               number(rect.width()) + "\" height=\"" + number(rect.height()) + "\"";
    }
    static QByteArray fill(const QColor& color) {
        QByteArray text =
            " fill=\"" + (color.isValid() ? color.name().toLatin1() : QByteArray("none")) + "\"";
        if (color.isValid() && color.alpha() != 255) {
            text += " fill-opacity=\"" + number(color.alphaF()) + "\"";
        }
        return text;
    }
    static QByteArray look(const QColor& inside, const Stroke& stroke) {
        QByteArray text = fill(inside);
        if (!stroke.color.isValid()) {
            return text;
        }
        text += " stroke=\"" + stroke.color.name().toLatin1() + "\" stroke-width=\"" + number(stroke.width) +
                "\"";
        if (stroke.color.alpha() != 255) {
            text += " stroke-opacity=\"" + number(stroke.color.alphaF()) + "\"";
        }
        if (stroke.round) {
            text += " stroke-linecap=\"round\" stroke-linejoin=\"round\"";
        }
        if (!stroke.dash.empty()) {
            QByteArray lengths;
            for (const double length : stroke.dash) {
                lengths += number(length) + " ";
            }
            text += " stroke-dasharray=\"" + lengths.trimmed() + "\"";
        }
        return text;
    }

    const Fonts& fonts_;
    QByteArray out_;
    int clips_ = 0;
};

} // namespace

QByteArray to_svg(const DisplayList& list, const Fonts& fonts) {
    const QByteArray width = number(list.size().width());
    const QByteArray height = number(list.size().height());
    QByteArray out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
                     "xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\" width=\"" +
                     number(list.size().width() / points_per_mm) + "mm\" height=\"" +
                     number(list.size().height() / points_per_mm) + "mm\" viewBox=\"0 0 " + width + " " +
                     height + "\">\n<style>\n";
    QList<QByteArray> families{css_name(fonts.family())};
    for (const UsedFace& used : used_faces(list, fonts)) {
        const QByteArray family = css_name(used.face->family());
        if (!families.contains(family)) {
            families << family;
        }
        const QByteArray font = used.face->subset(used.characters).toBase64();
        for (const bool bold : {false, true}) {
            if (bold ? used.bold : used.regular) {
                out += "@font-face{font-family:" + family + ";font-weight:" + (bold ? "bold" : "normal") +
                       ";src:url(data:font/" + (used.face->is_cff() ? "otf" : "ttf") + ";base64," + font +
                       ") format('" + (used.face->is_cff() ? "opentype" : "truetype") + "');}\n";
            }
        }
    }
    // As in the measurement: kerning, no ligatures, and spaces at a token's ends stay.
    out += "text{font-family:" + families.join(',') +
           ",sans-serif;font-kerning:normal;font-variant-ligatures:no-common-ligatures;white-space:pre}\n"
           "</style>\n<g xml:space=\"preserve\">\n";
    Writer writer(fonts);
    for (const Item& item : list.items()) {
        std::visit(writer, item);
    }
    return out + writer.body() + "</g>\n</svg>\n";
}

} // namespace ponderscope::figure
