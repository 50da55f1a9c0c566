// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/depth_grid.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int gutter = 34; // layer numbers and their name
constexpr int below = 30;  // source numbers and their name
constexpr double largest_cell = 30;

} // namespace

DepthGrid::DepthGrid(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(u"Weights by layer and source"_s);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    connect(&theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void DepthGrid::setValues(std::vector<float> values, int layers, int sources, const ValueLook& look) {
    values_ = std::move(values);
    layers_ = layers;
    sources_ = sources;
    look_ = look;
    hint_.clear();
    update();
}

void DepthGrid::setNames(const QString& layer, const QString& source, const QStringList& labels) {
    labels_ = labels;
    names_ = u"%1 → (%2 ↓)"_s.arg(source, layer);
    update();
}

void DepthGrid::clear(const QString& hint) {
    values_.clear();
    layers_ = 0;
    sources_ = 0;
    hint_ = hint;
    setAccessibleDescription(hint);
    update();
}

void DepthGrid::setChosen(int layer, int source) {
    layer_ = layer;
    source_ = source;
    update();
}

float DepthGrid::value(int layer, int source) const {
    if (layer < 0 || source < 0 || layer >= layers_ || source >= sources_) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    return values_[static_cast<std::size_t>(layer) * static_cast<std::size_t>(sources_) +
                   static_cast<std::size_t>(source)];
}

QRectF DepthGrid::plot() const {
    const double room_x = std::max(1, width() - gutter);
    const double room_y = std::max(1, height() - below);
    const double wide = std::min(largest_cell * 1.4, room_x / std::max(1, sources_));
    const double tall = std::min(largest_cell, room_y / std::max(1, layers_));
    return {gutter, 0, wide * sources_, tall * layers_};
}

QRectF DepthGrid::cell(int layer, int source) const {
    const QRectF box = plot();
    const double wide = box.width() / std::max(1, sources_);
    const double tall = box.height() / std::max(1, layers_);
    return {box.left() + source * wide, box.top() + layer * tall, wide, tall};
}

std::pair<int, int> DepthGrid::at(QPointF position) const {
    const QRectF box = plot();
    if (layers_ == 0 || !box.contains(position)) {
        return {-1, -1};
    }
    const int source = static_cast<int>((position.x() - box.left()) / box.width() * sources_);
    const int layer = static_cast<int>((position.y() - box.top()) / box.height() * layers_);
    return std::isnan(value(layer, source)) ? std::pair{-1, -1} : std::pair{layer, source};
}

QSize DepthGrid::sizeHint() const {
    return {300, minimumSizeHint().height()}; // it takes what there is
}

QSize DepthGrid::minimumSizeHint() const {
    return {140, 90};
}

void DepthGrid::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const Palette& colours = theme_.colours();
    painter.fillRect(rect(), colours.panel);
    painter.setFont(theme_.small());
    painter.setPen(colours.soft);
    if (layers_ == 0) {
        painter.setFont(theme_.body());
        painter.drawText(rect().adjusted(12, 8, -12, -8), Qt::AlignCenter | Qt::TextWordWrap, hint_);
        return;
    }
    const QRectF box = plot();
    const ColourMap& map = look_.diverging ? theme_.differenceMap() : theme_.magnitudeMap();
    const double gap = box.width() / sources_ > 5 && box.height() / layers_ > 5 ? 1 : 0;
    for (int layer = 0; layer < layers_; ++layer) {
        for (int source = 0; source < sources_; ++source) {
            const float now = value(layer, source);
            if (!std::isnan(now)) {
                const QRectF place = cell(layer, source);
                // Whole pixels, so that cells have sharp edges and even gaps.
                const QRect pixels(QPoint(qRound(place.left()), qRound(place.top())),
                                   QPoint(qRound(place.right() - gap) - 1, qRound(place.bottom() - gap) - 1));
                painter.fillRect(pixels, QColor(map.at(look_.scale.position(static_cast<double>(now)))));
            }
        }
    }
    const QFontMetrics metrics(theme_.small());
    const auto every = [&](double pitch, double needed) {
        return std::max(1, static_cast<int>(std::ceil(needed / std::max(pitch, 0.1))));
    };
    const int down = every(box.height() / layers_, metrics.height());
    for (int layer = 0; layer < layers_; layer += down) {
        const QRectF place = cell(layer, 0);
        painter.drawText(QRectF(0, place.top(), gutter - 7, place.height()),
                         Qt::AlignRight | Qt::AlignVCenter | Qt::TextDontClip, QString::number(layer));
    }
    int widest = 0;
    for (const QString& label : labels_) {
        widest = std::max(widest, metrics.horizontalAdvance(label));
    }
    const int right = every(box.width() / sources_, widest + 6);
    for (int source = 0; source < sources_; source += right) {
        const QRectF place = cell(0, source);
        painter.drawText(QRectF(place.left(), box.bottom() + 1, place.width(), metrics.height()),
                         Qt::AlignCenter | Qt::TextDontClip, labels_.value(source));
    }
    painter.drawText(
        QRectF(box.left(), box.bottom() + metrics.height(), width() - box.left(), metrics.height()),
        Qt::AlignLeft | Qt::AlignVCenter, names_);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    if (source_ >= 0 && source_ < sources_) {
        const QRectF column(cell(0, source_).left(), box.top(), box.width() / sources_, box.height());
        painter.setPen(QPen(colours.soft, 1));
        painter.drawRoundedRect(column.adjusted(-0.5, 0.5, -0.5, -0.5), 2, 2);
    }
    if (!std::isnan(value(layer_, source_))) {
        painter.setPen(QPen(colours.panel, 4));
        painter.drawRoundedRect(cell(layer_, source_), 2, 2);
        painter.setPen(QPen(colours.a, 2));
        painter.drawRoundedRect(cell(layer_, source_), 2, 2);
    }
    if (hasFocus()) {
        painter.setPen(colours.border);
        painter.drawRect(box.adjusted(-0.5, 0.5, -0.5, -0.5));
    }
}

void DepthGrid::mouseMoveEvent(QMouseEvent* event) {
    const auto [layer, source] = at(event->position());
    Q_EMIT hovered(layer, source);
}

void DepthGrid::mousePressEvent(QMouseEvent* event) {
    const auto [layer, source] = at(event->position());
    if (event->button() == Qt::LeftButton && layer >= 0) {
        Q_EMIT chosen(layer, source);
    }
}

void DepthGrid::keyPressEvent(QKeyEvent* event) {
    int layer = layer_;
    int source = source_;
    switch (event->key()) {
    case Qt::Key_Up:
        --layer;
        break;
    case Qt::Key_Down:
        ++layer;
        break;
    case Qt::Key_Left:
        --source;
        break;
    case Qt::Key_Right:
        ++source;
        break;
    default:
        QWidget::keyPressEvent(event);
        return;
    }
    if (layers_ > 0) {
        Q_EMIT chosen(std::clamp(layer, 0, layers_ - 1), std::clamp(source, 0, sources_ - 1));
    }
}

void DepthGrid::leaveEvent(QEvent*) {
    Q_EMIT hovered(-1, -1);
}

} // namespace ponderscope
