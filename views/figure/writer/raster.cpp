// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/writer/backends.h"

#include "core/base/error.h"

#include <QBuffer>
#include <QImageWriter>
#include <QPainter>

#include <cmath>

namespace ponderscope::figure {
namespace {

QPen pen_of(const Stroke& stroke) {
    if (!stroke.color.isValid()) {
        return {Qt::NoPen};
    }
    QPen pen(stroke.color, stroke.width);
    pen.setCapStyle(stroke.round ? Qt::RoundCap : Qt::FlatCap);
    pen.setJoinStyle(stroke.round ? Qt::RoundJoin : Qt::MiterJoin);
    if (!stroke.dash.empty()) {
        QList<qreal> pattern; // in units of the pen's width
        for (const double length : stroke.dash) {
            pattern.append(length / stroke.width);
        }
        pen.setDashPattern(pattern);
    }
    return pen;
}

QBrush brush_of(const QColor& fill) {
    return fill.isValid() ? QBrush(fill) : QBrush(Qt::NoBrush);
}

struct Painting {
    QPainter& painter;
    const Fonts& fonts;

    void operator()(const RectItem& item) const {
        painter.setPen(pen_of(item.stroke));
        painter.setBrush(brush_of(item.fill));
        if (item.radius > 0) {
            painter.drawPath(rounded_rect(item.rect, item.radius));
        } else { // without antialiasing: no seams between adjacent cells
            painter.setRenderHint(QPainter::Antialiasing, item.stroke.color.isValid());
            painter.drawRect(item.rect);
            painter.setRenderHint(QPainter::Antialiasing);
        }
    }
    void operator()(const PathItem& item) const {
        QPainterPath path = item.path;
        path.setFillRule(Qt::WindingFill);
        painter.setPen(pen_of(item.stroke));
        painter.setBrush(brush_of(item.fill));
        painter.drawPath(path);
    }
    void operator()(const TextItem& item) const {
        painter.fillPath(outline_of(item, fonts), item.style.color);
    }
    void operator()(const ImageItem& item) const {
        painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
        painter.drawImage(item.target, item.image);
    }
    void operator()(const ClipBegin& item) const {
        painter.save();
        painter.setClipRect(item.rect, Qt::IntersectClip);
    }
    void operator()(const ClipEnd&) const { painter.restore(); }
};

} // namespace

void paint(const DisplayList& list, const Fonts& fonts, QPainter& painter) {
    painter.setRenderHint(QPainter::Antialiasing);
    const Painting painting{painter, fonts};
    for (const Item& item : list.items()) {
        std::visit(painting, item);
    }
}

QImage to_image(const DisplayList& list, const Fonts& fonts, double dpi) {
    const double scale = dpi / 72;
    const int width = static_cast<int>(std::lround(list.size().width() * scale));
    const int height = static_cast<int>(std::lround(list.size().height() * scale));
    if (width < 1 || height < 1 || width > 32767 || height > 32767) {
        throw InputError(
            ErrorId::figure_size,
            "A figure of " + std::to_string(width) + " × " + std::to_string(height) +
                " pixels is too large: a side can have at most 32767 pixels; choose a lower dpi or fewer "
                "tokens.");
    }
    QImage image(width, height, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    painter.scale(scale, scale);
    paint(list, fonts, painter);
    painter.end();
    image.setDotsPerMeterX(static_cast<int>(std::lround(dpi / 0.0254)));
    image.setDotsPerMeterY(static_cast<int>(std::lround(dpi / 0.0254)));
    return image;
}

QByteArray to_png(const DisplayList& list, const Fonts& fonts, double dpi) {
    return png_of(to_image(list, fonts, dpi));
}

QByteArray png_of(const QImage& image) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QImageWriter writer(&buffer, "png");
    if (!writer.write(image)) {
        throw EnvironmentError(ErrorId::environment_failed, "The figure could not be encoded as PNG: " +
                                                                writer.errorString().toStdString() +
                                                                "; choose a smaller width_mm or dpi.");
    }
    return bytes;
}

} // namespace ponderscope::figure
