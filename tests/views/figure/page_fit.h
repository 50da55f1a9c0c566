// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/writer/display_list.h"
#include "views/figure/writer/fonts.h"

#include <QPainterPathStroker>
#include <QStringList>

#include <vector>

namespace ponderscope::testing {

using Qt::StringLiterals::operator""_s;

/// What cannot be read on a page, one sentence each: glyphs that leave the page, the box they are clipped to
/// or the rounded box behind them, glyphs of one text on those of another, and lines or marks that the page's
/// edge cuts.
inline QStringList misplaced(const figure::DisplayList& list, const figure::Fonts& fonts) {
    using namespace figure;
    constexpr double slack = 0.3; // points: side bearings, half a hairline
    const QRectF page(QPointF(), list.size());
    const auto beyond = [](const QRectF& inner, const QRectF& outer) {
        return !outer.adjusted(-slack, -slack, slack, slack).contains(inner);
    };
    const auto said = [](const QRectF& rect) {
        return u"[%1 %2, %3 %4]"_s.arg(rect.left()).arg(rect.top()).arg(rect.right()).arg(rect.bottom());
    };
    QStringList faults;
    std::vector<QRectF> clips{page};
    std::vector<QRectF> boxes;
    struct Set {
        QString text;
        QRectF ink;
    };
    std::vector<Set> texts;
    const auto shape = [&](const QPainterPath& outline, const Stroke& stroke, const char* what) {
        QRectF ink = outline.boundingRect();
        if (stroke.color.isValid()) {
            QPainterPathStroker pen;
            pen.setWidth(stroke.width);
            pen.setCapStyle(stroke.round ? Qt::RoundCap : Qt::FlatCap);
            ink |= pen.createStroke(outline).boundingRect();
        }
        // A clip of the plot may cut a line; the page's edge may not.
        if (clips.size() == 1 && beyond(ink, page)) {
            faults << u"a %1 leaves the page: %2"_s.arg(QLatin1String(what), said(ink));
        } else if (clips.size() > 1 && clips.back().intersects(ink) &&
                   beyond(clips.back().intersected(ink), page)) {
            faults << u"a %1 is cut by the page's edge: %2"_s.arg(QLatin1String(what), said(ink));
        }
    };
    for (const Item& item : list.items()) {
        if (const auto* clip = std::get_if<ClipBegin>(&item)) {
            clips.push_back(clip->rect);
        } else if (std::holds_alternative<ClipEnd>(item)) {
            clips.pop_back();
        } else if (const auto* path = std::get_if<PathItem>(&item)) {
            shape(path->path, path->stroke, "line or mark");
        } else if (const auto* image = std::get_if<ImageItem>(&item)) {
            shape(rounded_rect(image->target, 0), {}, "image");
        } else if (const auto* rect = std::get_if<RectItem>(&item)) {
            shape(rounded_rect(rect->rect, 0), rect->stroke, "box");
            if (rect->radius > 0 && rect->fill.isValid()) {
                boxes.push_back(rect->rect);
            }
        } else if (const auto* text = std::get_if<TextItem>(&item)) {
            const QRectF ink = outline_of(*text, fonts).boundingRect();
            if (ink.isEmpty()) {
                continue;
            }
            if (beyond(ink, page)) {
                faults << u"“%1” leaves the page: %2"_s.arg(text->text, said(ink));
            } else if (beyond(ink, clips.back())) {
                faults << u"“%1” is cut by its box: %2"_s.arg(text->text, said(ink));
            }
            for (const QRectF& box : boxes) {
                if (box.contains(ink.center()) &&
                    (ink.left() < box.left() - 1 || ink.right() > box.right() + 1)) {
                    faults << u"“%1” is wider than its box"_s.arg(text->text);
                }
            }
            for (const Set& other : texts) {
                const QRectF both = other.ink.intersected(ink);
                if (both.width() > 0.8 && both.height() > 0.8) {
                    faults << u"“%1” stands on “%2”"_s.arg(text->text, other.text);
                }
            }
            texts.push_back({text->text, ink});
        }
    }
    return faults;
}

} // namespace ponderscope::testing
