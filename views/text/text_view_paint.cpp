// SPDX-License-Identifier: GPL-3.0-or-later
// Draws the text; text_view.cpp has its behaviour.
#include "views/text/text_view.h"

#include <QPaintEvent>
#include <QPainter>
#include <QPolygonF>
#include <QScrollBar>

#include <algorithm>
#include <cmath>

namespace ponderscope {

void TextView::paintEvent(QPaintEvent* event) {
    QPainter painter(viewport());
    painter.fillRect(event->rect(), context_.theme.colours().panel);
    if (!hint().isEmpty()) {
        paintHint(painter);
        return;
    }
    painter.setRenderHint(QPainter::Antialiasing);
    const int offset = verticalScrollBar()->value() - margin_top;
    const qint64 first = std::max<qint64>(0, (event->rect().top() + offset) / metrics_.pitch - 1);
    const qint64 last =
        std::min<qint64>(layout_.lineCount() - 1, (event->rect().bottom() + offset) / metrics_.pitch + 1);
    for (qint64 line = first; line <= last; ++line) {
        paintLine(painter, line, topOf(line));
    }
}

void TextView::paintHint(QPainter& painter) {
    painter.setFont(context_.theme.body());
    painter.setPen(context_.theme.colours().soft);
    painter.drawText(viewport()->rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap,
                     hint());
}

void TextView::paintLine(QPainter& painter, qint64 line, qreal top) {
    const Palette& colours = context_.theme.colours();
    const ColourMap& map = map_of(values_, context_.theme);
    const qint64 selected = context_.selection.token();
    const qint64 hover = context_.selection.hover();
    const TokenSpan chosen = span();
    QRectF selectedBox;
    QRectF hoverBox;
    std::vector<QRectF> spanned;
    std::vector<QRectF> flagged;
    std::vector<QRectF> veiled;
    std::vector<QRectF> marked;
    painter.setPen(Qt::NoPen);
    for (const TextLayout::PlacedToken& placed : layout_.tokens(line)) {
        const QRectF box = boxOf(placed, top);
        const auto index = static_cast<std::size_t>(placed.token);
        const double position =
            index < values_.values.size() ? values_.scale.position(values_.values[index]) : std::nan("");
        if (!std::isnan(position)) {
            const QRgb colour = map.at(position);
            if (colour != colours.panel.rgb()) {
                painter.setBrush(QColor(colour));
                painter.drawRoundedRect(box, radius, radius);
            }
        }
        if (hasBars()) {
            if (hasTicks()) {
                paintTicks(painter, placed.token, box);
            } else {
                paintBar(painter, placed.token, box);
            }
        }
        const bool found = std::binary_search(marks_.begin(), marks_.end(), placed.token);
        if (!noteAt(placed.token).isEmpty()) {
            flagged.push_back(box);
        }
        if (alone_ && !found) {
            veiled.push_back(box);
        }
        if (found) {
            marked.push_back(box);
        }
        if (chosen.contains(placed.token)) {
            spanned.push_back(box);
        }
        if (placed.token == selected) {
            selectedBox = box;
        } else if (placed.token == hover) {
            hoverBox = box;
        }
    }
    painter.setBrush(Qt::NoBrush);
    if (!hoverBox.isNull()) {
        painter.setPen(QPen(colours.soft, 1));
        painter.drawRoundedRect(hoverBox.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius);
    }
    layout_.draw(painter, line, margin_left, top + metrics_.ascent, colours.text, colours.soft);
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

void TextView::outlineSpan(QPainter& painter, std::vector<QRectF> boxes) const {
    // Adjacent boxes share one outline; words of two directions may lie apart.
    std::sort(boxes.begin(), boxes.end(),
              [](const QRectF& a, const QRectF& b) { return a.left() < b.left(); });
    std::vector<QRectF> outlines;
    for (const QRectF& box : boxes) {
        if (!outlines.empty() && box.left() - outlines.back().right() < layout_.gap()) {
            outlines.back() |= box;
        } else {
            outlines.push_back(box);
        }
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(context_.theme.colours().a, 2));
    for (const QRectF& outline : outlines) {
        painter.drawRoundedRect(outline.adjusted(-1, -2, 1, 2), radius + 1, radius + 1);
    }
}

void TextView::paintTicks(QPainter& painter, qint64 token, const QRectF& box) {
    const qint64 row = context_.selection.rowOf(token);
    const TokenColumns& tokens = layout_.sequence()->tokens;
    if (row < 0 || row >= static_cast<qint64>(tokens.size())) {
        return;
    }
    const Palette& colours = context_.theme.colours();
    const std::vector<std::int32_t>& steps = values_.replay.isEmpty() ? tokens.steps : replay_.steps;
    const qint64 ran = std::clamp<qint64>(steps[static_cast<std::size_t>(row)], 0, maxSteps_);
    const qreal left = box.left() + 4;
    const qreal room = std::max<qreal>(box.width() - 8, 3);
    const qreal top = box.bottom() + 3;
    const qreal height = 3;
    const auto count = static_cast<qreal>(maxSteps_);
    const qreal width = std::min<qreal>(7, (room - 2 * (count - 1)) / count);
    painter.setPen(Qt::NoPen);
    if (width < 1.5) {
        // No room for single ticks: one bar, filled as far.
        painter.setBrush(colours.faint);
        painter.drawRoundedRect(QRectF(left, top, room, height), 1, 1);
        painter.setBrush(colours.a);
        painter.drawRoundedRect(QRectF(left, top, room * static_cast<qreal>(ran) / count, height), 1, 1);
        return;
    }
    for (qint64 k = 0; k < maxSteps_; ++k) {
        painter.setBrush(k < ran ? colours.a : colours.faint);
        painter.drawRoundedRect(QRectF(left + static_cast<qreal>(k) * (width + 2), top, width, height), 1, 1);
    }
}

void TextView::paintBar(QPainter& painter, qint64 token, const QRectF& box) {
    const auto index = static_cast<std::size_t>(token);
    const double position =
        index < barValues_.values.size() ? barValues_.scale.position(barValues_.values[index]) : std::nan("");
    if (std::isnan(position)) {
        return;
    }
    const QRectF room(box.left() + 4, box.bottom() + 3, std::max<qreal>(box.width() - 8, 3), 3);
    painter.setPen(Qt::NoPen);
    painter.setBrush(context_.theme.colours().faint);
    painter.drawRoundedRect(room, 1, 1);
    // Bars begin at zero. Values below zero extend the other way, in the other colour.
    const double zero = barValues_.classes.isEmpty() ? std::clamp(barValues_.scale.position(0), 0.0, 1.0) : 0;
    const double end = std::clamp(position, 0.0, 1.0);
    painter.setBrush(end < zero ? context_.theme.colours().b : context_.theme.colours().a);
    painter.drawRoundedRect(QRectF(room.left() + room.width() * std::min(zero, end), room.top(),
                                   room.width() * std::abs(end - zero), 3),
                            1, 1);
}

} // namespace ponderscope
