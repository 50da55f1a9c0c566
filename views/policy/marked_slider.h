// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPainter>
#include <QSlider>
#include <QStyle>
#include <QStyleOptionSlider>

namespace ponderscope {

/// A slider with a mark at one of its places.
class MarkedSlider : public QSlider {
public:
    using QSlider::QSlider;
    void setMark(int place) { // negative: none
        mark_ = place;
        update();
    }

protected:
    void paintEvent(QPaintEvent* event) override {
        QSlider::paintEvent(event);
        if (mark_ < 0) {
            return;
        }
        QStyleOptionSlider option;
        initStyleOption(&option);
        const int handle = style()->pixelMetric(QStyle::PM_SliderLength, &option, this);
        const int x =
            handle / 2 + QStyle::sliderPositionFromValue(minimum(), maximum(), mark_, width() - handle);
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(palette().color(QPalette::WindowText));
        const QPointF tip(x, height() - 5);
        painter.drawPolygon(QPolygonF{tip, tip + QPointF(-4, 5), tip + QPointF(4, 5)});
    }

private:
    int mark_ = -1;
};

} // namespace ponderscope
