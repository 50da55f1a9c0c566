// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/writer/display_list.h"

#include <algorithm>

namespace ponderscope::figure {

void DisplayList::polyline(const std::vector<QPointF>& points, const Stroke& stroke) {
    if (points.size() < 2) {
        return;
    }
    QPainterPath path(points.front());
    for (std::size_t i = 1; i < points.size(); ++i) {
        path.lineTo(points[i]);
    }
    items_.emplace_back(PathItem{path, QColor(), stroke});
}

void DisplayList::circle(QPointF center, double radius, const QColor& fill, const Stroke& stroke) {
    QPainterPath path;
    if (fill.isValid() && !stroke.color.isValid()) { // a dot needs a fifth of the bytes of four curves
        constexpr double nearly_nothing = 0.01;
        path.moveTo(center);
        path.lineTo(center + QPointF(nearly_nothing, 0));
        items_.emplace_back(PathItem{path, QColor(), {fill, 2 * radius, {}, true}});
        return;
    }
    path.addEllipse(center, radius, radius);
    items_.emplace_back(PathItem{path, fill, stroke});
}

void DisplayList::text(const QString& text, QPointF at, const TextStyle& style, Align align,
                       double rotation) {
    if (!text.isEmpty()) {
        items_.emplace_back(TextItem{text, at, style, align, rotation});
    }
}

void DisplayList::append(const DisplayList& other, QPointF offset) {
    for (Item item : other.items_) {
        if (auto* r = std::get_if<RectItem>(&item)) {
            r->rect.translate(offset);
        } else if (auto* p = std::get_if<PathItem>(&item)) {
            p->path.translate(offset);
        } else if (auto* t = std::get_if<TextItem>(&item)) {
            t->at += offset;
        } else if (auto* i = std::get_if<ImageItem>(&item)) {
            i->target.translate(offset);
        } else if (auto* c = std::get_if<ClipBegin>(&item)) {
            c->rect.translate(offset);
        }
        items_.push_back(std::move(item));
    }
}

QPainterPath rounded_rect(const QRectF& rect, double radius) {
    QPainterPath path;
    const double r = std::min({radius, rect.width() / 2, rect.height() / 2});
    if (r <= 0) {
        path.addRect(rect);
    } else {
        path.addRoundedRect(rect, r, r);
    }
    return path;
}

} // namespace ponderscope::figure
