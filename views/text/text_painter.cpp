// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/text_painter.h"

#include <QPainter>
#include <QPolygonF>

#include <algorithm>
#include <cmath>

namespace ponderscope {

namespace {

constexpr qreal radius = 4; ///< of box corners

} // namespace

QRectF TextPainter::box(const TextLayout::PlacedToken& placed, qreal top, qreal height) {
    constexpr qreal outset = 4; // pixels beyond the word
    const qreal left = margin_left + placed.left - (placed.roomBefore ? outset : -0.5);
    const qreal right = margin_left + placed.right + (placed.roomAfter ? outset : -0.5);
    return {left, top, std::max<qreal>(right - left, 2), height};
}

void TextPainter::paint(QPainter& painter, qint64 line, qreal top, qreal height, qreal ascent) const {
    const Palette& colours = context.theme.colours();
    const ColourMap& map = map_of(values, context.theme);
    const TokenAnnotation* notes = layout.sequence()->annotation(note_annotation);
    QRectF selectedBox;
    QRectF hoverBox;
    std::vector<QRectF> spanned;
    std::vector<QRectF> flagged;
    std::vector<QRectF> veiled;
    std::vector<QRectF> marked;
    painter.setPen(Qt::NoPen);
    for (const TextLayout::PlacedToken& placed : layout.tokens(line)) {
        const QRectF box = TextPainter::box(placed, top, height);
        const auto index = static_cast<std::size_t>(placed.token);
        const double position =
            index < values.values.size() ? values.scale.position(values.values[index]) : std::nan("");
        if (!std::isnan(position)) {
            const QRgb colour = map.at(position);
            if (colour != colours.panel.rgb()) {
                painter.setBrush(QColor(colour));
                painter.drawRoundedRect(box, radius, radius);
            }
        }
        if (!ticks.empty()) {
            paintTicks(painter, placed.token, box);
        } else {
            paintBar(painter, placed.token, box);
        }
        const bool hit = std::binary_search(found.begin(), found.end(), placed.token);
        if (notes != nullptr && notes->category && !format_annotation(*notes, index).isEmpty()) {
            flagged.push_back(box);
        }
        if (found_alone && !hit) {
            veiled.push_back(box);
        }
        if (hit) {
            marked.push_back(box);
        }
        if (span.contains(placed.token)) {
            spanned.push_back(box);
        }
        if (placed.token == context.selection.token()) {
            selectedBox = box;
        } else if (placed.token == context.selection.hover()) {
            hoverBox = box;
        }
    }
    painter.setBrush(Qt::NoBrush);
    if (!hoverBox.isNull()) {
        painter.setPen(QPen(colours.soft, 1));
        painter.drawRoundedRect(hoverBox.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius);
    }
    layout.draw(painter, line, margin_left, top + ascent, colours.text, colours.soft);
    painter.setPen(Qt::NoPen);
    QColor veil = colours.panel;
    veil.setAlphaF(0.78F);
    for (const QRectF& box : veiled) {
        painter.fillRect(box.adjusted(-1, -1, 1, 1), veil);
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(colours.a, 1));
    for (const QRectF& box : marked) {
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius);
    }
    painter.setPen(Qt::NoPen);
    painter.setBrush(colours.b);
    for (const QRectF& box : flagged) {
        painter.drawPolygon(
            QPolygonF{box.topRight(), box.topRight() - QPointF(8, 0), box.topRight() + QPointF(0, 8)});
    }
    if (!spanned.empty()) {
        outlineSpan(painter, std::move(spanned));
    } else if (!selectedBox.isNull()) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(colours.a, 2));
        painter.drawRoundedRect(selectedBox.adjusted(-2, -2, 2, 2), radius + 1, radius + 1);
    }
}

void TextPainter::outlineSpan(QPainter& painter, std::vector<QRectF> boxes) const {
    // Adjacent boxes share one outline. A span with words of two directions may have several outlines.
    std::ranges::sort(boxes, [](const QRectF& a, const QRectF& b) { return a.left() < b.left(); });
    std::vector<QRectF> outlines;
    for (const QRectF& box : boxes) {
        if (!outlines.empty() && box.left() - outlines.back().right() < layout.gap()) {
            outlines.back() |= box;
        } else {
            outlines.push_back(box);
        }
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(context.theme.colours().a, 2));
    for (const QRectF& outline : outlines) {
        painter.drawRoundedRect(outline.adjusted(-1, -2, 1, 2), radius + 1, radius + 1);
    }
}

void TextPainter::paintTicks(QPainter& painter, qint64 token, const QRectF& box) const {
    const qint64 row = context.selection.rowOf(token);
    if (row < 0 || row >= static_cast<qint64>(ticks.size())) {
        return;
    }
    const Palette& colours = context.theme.colours();
    const qint64 ran = std::clamp<qint64>(ticks[static_cast<std::size_t>(row)], 0, max_steps);
    const qreal left = box.left() + 4;
    const qreal room = std::max<qreal>(box.width() - 8, 3);
    const qreal top = box.bottom() + 3;
    const qreal height = 3;
    const auto count = static_cast<qreal>(max_steps);
    const qreal width = std::min<qreal>(7, (room - 2 * (count - 1)) / count);
    painter.setPen(Qt::NoPen);
    if (width < 1.5) {
        // If single ticks do not fit, draw one bar, filled in proportion.
        painter.setBrush(colours.faint);
        painter.drawRoundedRect(QRectF(left, top, room, height), 1, 1);
        painter.setBrush(colours.a);
        painter.drawRoundedRect(QRectF(left, top, room * static_cast<qreal>(ran) / count, height), 1, 1);
        return;
    }
    for (qint64 k = 0; k < max_steps; ++k) {
        painter.setBrush(k < ran ? colours.a : colours.faint);
        painter.drawRoundedRect(QRectF(left + static_cast<qreal>(k) * (width + 2), top, width, height), 1, 1);
    }
}

void TextPainter::paintBar(QPainter& painter, qint64 token, const QRectF& box) const {
    const auto index = static_cast<std::size_t>(token);
    const double position =
        index < bars.values.size() ? bars.scale.position(bars.values[index]) : std::nan("");
    if (std::isnan(position)) {
        return;
    }
    const QRectF room(box.left() + 4, box.bottom() + 3, std::max<qreal>(box.width() - 8, 3), 3);
    painter.setPen(Qt::NoPen);
    painter.setBrush(context.theme.colours().faint);
    painter.drawRoundedRect(room, 1, 1);
    // Bars begin at zero. Values below zero extend the other way, in the other colour.
    const double zero = std::clamp(bars.scale.position(0), 0.0, 1.0);
    const double end = std::clamp(position, 0.0, 1.0);
    painter.setBrush(end < zero ? context.theme.colours().b : context.theme.colours().a);
    painter.drawRoundedRect(QRectF(room.left() + room.width() * std::min(zero, end), room.top(),
                                   room.width() * std::abs(end - zero), 3),
                            1, 1);
}

} // namespace ponderscope
