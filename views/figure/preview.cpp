// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/preview.h"

#include "views/figure/writer/backends.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {

namespace {

constexpr int border = 16; ///< around the page, in pixels

} // namespace

FigurePreview::FigurePreview(QWidget* parent) : QWidget(parent) {
    setAccessibleName(u"Preview of the figure"_s);
}

void FigurePreview::setFigure(const Figure* figure, const Fonts* fonts) {
    figure_ = figure;
    fonts_ = fonts;
    setFixedSize(sizeHint());
    update();
}

void FigurePreview::setVision(Vision vision) {
    vision_ = vision;
    update();
}

void FigurePreview::setRoom(int pixels) {
    if (pixels != room_) {
        room_ = pixels;
        setFixedSize(sizeHint());
        update();
    }
}

double FigurePreview::zoom() const {
    const double wide = figure_->page.size().width() * logicalDpiX() / 72.0;
    return room_ > 0 ? std::clamp((room_ - 2 * border) / wide, 0.3, 1.0) : 1.0;
}

double FigurePreview::pixelsPerPoint() const {
    return zoom() * logicalDpiX() / 72.0;
}

QSize FigurePreview::sizeHint() const {
    if (!figure_) {
        return {240, 120};
    }
    const QSizeF page = figure_->page.size() * pixelsPerPoint();
    return {static_cast<int>(std::ceil(page.width())) + 2 * border,
            static_cast<int>(std::ceil(page.height())) + 2 * border +
                (zoom() < 1 ? fontMetrics().height() : 0)};
}

void FigurePreview::paintEvent(QPaintEvent*) {
    if (!figure_ || !fonts_) {
        return;
    }
    QPainter painter(this);
    const QSizeF page = figure_->page.size() * pixelsPerPoint();
    painter.fillRect(QRectF(QPointF(8, 8), page + QSizeF(16, 16)), Qt::white);
    if (zoom() < 1) {
        painter.drawText(rect().adjusted(0, 0, -8, 0), Qt::AlignRight | Qt::AlignBottom,
                         u"at %1 % of the true size"_s.arg(std::lround(100 * zoom())));
    }
    if (vision_ != Vision::normal) {
        const double ratio = devicePixelRatioF();
        QImage image = as_seen(to_image(figure_->page, *fonts_, logicalDpiX() * zoom() * ratio), vision_);
        image.setDevicePixelRatio(ratio);
        painter.drawImage(QPointF(border, border), image);
        return;
    }
    painter.translate(border, border);
    painter.scale(pixelsPerPoint(), pixelsPerPoint());
    paint(figure_->page, *fonts_, painter);
}

} // namespace ponderscope::figure
