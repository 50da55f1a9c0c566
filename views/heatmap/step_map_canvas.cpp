// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/step_map_canvas.h"

#include "views/common/format.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int gutter = 24; // pixels for step numbers
constexpr int axis = 22;   // pixels for token numbers
constexpr double least_tokens = 8;
constexpr double merged_from = 8; ///< tokens per pixel from which the scale fits means, not single values

} // namespace

StepMapCanvas::StepMapCanvas(ViewContext context, QWidget* parent)
    : QWidget(parent), selection_(context.selection), theme_(context.theme) {
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(u"Heatmap over tokens"_s);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    connect(&theme_, &Theme::changed, this, &StepMapCanvas::drop);
    connect(&selection_, &Selection::hoverChanged, this, qOverload<>(&QWidget::update));
    connect(&selection_, &Selection::tokenChanged, this, [this](qint64 token) {
        bringIntoView(token);
        update();
    });
}

void StepMapCanvas::setMap(std::shared_ptr<const StepMap> map) {
    const double before = map_ ? static_cast<double>(map_->tokens()) : 0;
    const bool showed_all = !map_ || (first_ <= 0 && last_ >= before);
    map_ = map && !map->isEmpty() ? std::move(map) : nullptr;
    const double now = map_ ? static_cast<double>(map_->tokens()) : 0;
    if (showed_all || now < last_) {
        first_ = 0;
        last_ = now;
    }
    look_ = map_ ? map_->look() : ValueLook();
    drop();
    Q_EMIT viewChanged();
}

void StepMapCanvas::fitScale(const HeldRange& held) {
    if (!map_) {
        return;
    }
    look_ = map_->look();
    ColourScale& scale = look_.scale;
    if (tokensPerPixel() >= merged_from && !scale.logarithmic) {
        // Fit the scale to the means: they are close together and would have one colour on the tokens' scale.
        std::vector<float> drawn;
        for (const StepMap::Cell& cell : map_->columns(first_, last_, plotRect().width())) {
            if (cell.kind == StepMap::Kind::value && std::isfinite(cell.value)) {
                drawn.push_back(cell.value);
            }
        }
        std::ranges::sort(drawn);
        if (!drawn.empty()) {
            const auto at = [&](double share) {
                return static_cast<double>(
                    drawn[static_cast<std::size_t>(share * static_cast<double>(drawn.size() - 1))]);
            };
            const double step = std::pow(10, std::floor(std::log10(std::max(at(0.99) - at(0.01), 1e-9)))) / 2;
            scale = {std::floor(at(0.01) / step) * step, std::ceil(at(0.99) / step) * step, false};
            if (!(scale.high > scale.low)) {
                scale.high = scale.low + step;
            }
            if (look_.diverging) { // equal distances from 0 have equal strength
                scale = ColourScale::symmetric(std::max(std::abs(scale.low), std::abs(scale.high)));
            }
        }
    }
    look_.hold(held);
    drop();
}

void StepMapCanvas::setHint(const QString& hint) {
    hint_ = hint;
    update();
}

void StepMapCanvas::setView(double first, double last) {
    if (!map_) {
        return;
    }
    const auto all = static_cast<double>(map_->tokens());
    const double extent = std::clamp(last - first, std::min(least_tokens, all), all);
    first = std::clamp(first, 0.0, all - extent);
    if (first == first_ && first + extent == last_) {
        return;
    }
    first_ = first;
    last_ = first + extent;
    drop();
    Q_EMIT viewChanged();
}

void StepMapCanvas::showAll() {
    if (map_) {
        setView(0, static_cast<double>(map_->tokens()));
    }
}

void StepMapCanvas::zoom(double factor, double around) {
    const double extent = (last_ - first_) / factor;
    const double share = (around - first_) / std::max(last_ - first_, 1e-9);
    setView(around - share * extent, around + (1 - share) * extent);
}

QRect StepMapCanvas::plotRect() const {
    return rect().adjusted(gutter, 0, 0, -axis);
}

double StepMapCanvas::tokensPerPixel() const {
    return std::max(1.0, (last_ - first_) / std::max(1, plotRect().width()));
}

qint64 StepMapCanvas::tokenAt(QPointF position) const {
    const QRect plot = plotRect();
    if (!map_ || position.x() < plot.left() || position.x() >= plot.left() + plot.width() ||
        position.y() < plot.top() || position.y() >= plot.top() + plot.height()) {
        return -1;
    }
    const auto token = static_cast<qint64>(
        std::floor(first_ + (position.x() - plot.left()) / plot.width() * (last_ - first_)));
    return token >= 0 && token < map_->tokens() ? token : -1;
}

int StepMapCanvas::rowTop(std::int64_t row) const {
    const QRect plot = plotRect();
    return plot.top() + static_cast<int>(plot.height() * row / map_->steps());
}

int StepMapCanvas::stepAt(QPointF position) const {
    if (tokenAt(position) < 0) {
        return -1;
    }
    int step = 0;
    while (position.y() >= rowTop(step + 1)) {
        ++step;
    }
    return step;
}

void StepMapCanvas::drop() {
    picture_ = QImage();
    update();
}

void StepMapCanvas::render() {
    const int width = static_cast<int>(std::ceil(plotRect().width() * devicePixelRatioF()));
    const auto steps = static_cast<int>(map_->steps());
    if (width < 1) {
        return;
    }
    const std::vector<StepMap::Cell> cells = map_->columns(first_, last_, width);
    const ColourMap& colours = look_.diverging ? theme_.differenceMap() : theme_.magnitudeMap();
    const QRgb halted = theme_.colours().halted.rgb();
    const QRgb missing = theme_.colours().panel.rgb();
    picture_ = QImage(width, steps, QImage::Format_RGB32);
    for (int row = 0; row < steps; ++row) {
        auto* line = reinterpret_cast<QRgb*>(picture_.scanLine(row));
        for (int column = 0; column < width; ++column) {
            const StepMap::Cell& cell =
                cells[static_cast<std::size_t>(column) * static_cast<std::size_t>(steps) +
                      static_cast<std::size_t>(row)];
            line[column] = cell.kind == StepMap::Kind::value    ? colours.at(look_.scale.position(cell.value))
                           : cell.kind == StepMap::Kind::halted ? halted
                                                                : missing;
        }
    }
}

void StepMapCanvas::outline(QPainter& painter, qint64 token, bool pinned) const {
    if (token < 0 || static_cast<double>(token) + 1 < first_ || static_cast<double>(token) > last_) {
        return;
    }
    const QRect plot = plotRect();
    const double per_token = plot.width() / std::max(last_ - first_, 1e-9);
    const double left = plot.left() + (static_cast<double>(token) - first_) * per_token;
    // At least three pixels, so that the column is visible inside its outline.
    const double wide = std::max(per_token, 3.0);
    const QRectF column(left - (wide - per_token) / 2, plot.top(), wide, plot.height());
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme_.colours().panel, pinned ? 4 : 3));
    painter.drawRoundedRect(column.adjusted(-1.5, 1.5, 1.5, -1.5), 2, 2);
    painter.setPen(QPen(pinned ? theme_.colours().a : theme_.colours().soft, pinned ? 2 : 1));
    painter.drawRoundedRect(column.adjusted(-1.5, 1.5, 1.5, -1.5), 2, 2);
}

void StepMapCanvas::drawAxes(QPainter& painter) const {
    const QRect plot = plotRect();
    painter.setFont(theme_.small());
    painter.setPen(theme_.colours().soft);
    const QFontMetrics metrics(theme_.small());
    const std::int64_t rows = map_->steps();
    const int pitch = plot.height() / static_cast<int>(rows);
    const int every = std::max(1, (metrics.height() + std::max(1, pitch) - 1) / std::max(1, pitch));
    for (std::int64_t row = 0; row < rows; row += every) {
        painter.drawText(QRect(0, rowTop(row), gutter - 8, rowTop(row + 1) - rowTop(row)),
                         Qt::AlignRight | Qt::AlignVCenter | Qt::TextDontClip, QString::number(row));
    }
    const QRect below(plot.left(), plot.bottom() + 4, plot.width(), axis - 4);
    const auto begin = static_cast<qint64>(std::floor(first_));
    const auto end = static_cast<qint64>(std::ceil(last_));
    const bool whole = begin <= 0 && end >= map_->tokens();
    const QString left = format_count(begin);
    QString right = whole ? u"%1 tokens"_s.arg(format_count(map_->tokens()))
                          : u"%1 of %2 tokens"_s.arg(format_count(end), format_count(map_->tokens()));
    if (tokensPerPixel() > 1) {
        right += u" · each pixel is the mean of %1 tokens"_s.arg(std::ceil(tokensPerPixel()));
    }
    painter.drawText(below, Qt::AlignLeft | Qt::AlignVCenter, left);
    painter.drawText(below, Qt::AlignRight | Qt::AlignVCenter,
                     metrics.elidedText(right, Qt::ElideRight, plot.width() - 60));
}

void StepMapCanvas::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.colours().panel);
    if (!map_) {
        painter.setFont(theme_.body());
        painter.setPen(theme_.colours().soft);
        painter.drawText(rect().adjusted(16, 8, -16, -8), Qt::AlignCenter | Qt::TextWordWrap, hint_);
        return;
    }
    const QRect plot = plotRect();
    if (picture_.isNull()) {
        render();
    }
    const std::int64_t rows = map_->steps();
    for (std::int64_t step = 0; step < rows && !picture_.isNull(); ++step) {
        const int top = rowTop(step);
        const int next = rowTop(step + 1);
        const int gap = next - top > 6 && step + 1 < rows ? 1 : 0;
        painter.drawImage(QRect(plot.left(), top, plot.width(), std::max(1, next - top - gap)), picture_,
                          QRect(0, static_cast<int>(step), picture_.width(), 1));
    }
    painter.save();
    painter.setClipRect(plot.adjusted(-2, 0, 2, 0));
    painter.setRenderHint(QPainter::Antialiasing);
    if (selection_.hover() != selection_.token()) {
        outline(painter, selection_.hover(), false);
    }
    outline(painter, selection_.token(), true);
    painter.restore();
    drawAxes(painter);
    if (hasFocus()) {
        painter.setPen(theme_.colours().border);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(plot.adjusted(0, 0, -1, -1));
    }
}

void StepMapCanvas::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) {
        QWidget::mousePressEvent(event);
        return;
    }
    down_ = true;
    panning_ = false;
    pressed_ = event->position();
    pressedFirst_ = first_;
}

void StepMapCanvas::mouseMoveEvent(QMouseEvent* event) {
    const QPointF position = event->position();
    if (down_ && map_) {
        if (!panning_ && std::abs(position.x() - pressed_.x()) >= QApplication::startDragDistance()) {
            panning_ = true;
            setCursor(Qt::ClosedHandCursor);
        }
        if (panning_) {
            const double moved =
                (position.x() - pressed_.x()) / std::max(1, plotRect().width()) * (last_ - first_);
            setView(pressedFirst_ - moved, pressedFirst_ - moved + (last_ - first_));
            return;
        }
    }
    const qint64 token = tokenAt(position);
    selection_.setHover(token);
    Q_EMIT cellHovered(token, stepAt(position));
}

void StepMapCanvas::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || !down_) {
        QWidget::mouseReleaseEvent(event);
        return;
    }
    down_ = false;
    unsetCursor();
    if (!panning_) {
        const qint64 token = tokenAt(event->position());
        if (token >= 0) {
            selection_.setToken(token);
            chooseRow(stepAt(event->position()));
        }
    }
    panning_ = false;
}

void StepMapCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton) {
        showAll();
    }
}

void StepMapCanvas::wheelEvent(QWheelEvent* event) {
    if (!map_) {
        event->ignore();
        return;
    }
    const QRect plot = plotRect();
    const QPoint delta = event->angleDelta();
    const double extent = last_ - first_;
    if (std::abs(delta.x()) > std::abs(delta.y()) || event->modifiers() & Qt::ShiftModifier) {
        const double moved = -(delta.x() != 0 ? delta.x() : delta.y()) / 1200.0 * extent;
        setView(first_ + moved, last_ + moved);
    } else {
        const double share =
            std::clamp((event->position().x() - plot.left()) / std::max(1, plot.width()), 0.0, 1.0);
        zoom(std::pow(1.0015, delta.y()), first_ + share * extent);
    }
    event->accept();
}

void StepMapCanvas::moveToken(qint64 by) {
    const qint64 from = selection_.token();
    const qint64 last = map_->tokens() - 1;
    selection_.setToken(std::clamp<qint64>(from < 0 ? static_cast<qint64>(first_) : from + by, 0, last));
}

void StepMapCanvas::chooseRow(int row) {
    if (map_->rows() == StepMap::Rows::layers) {
        selection_.setLayer(row);
    } else if (map_->rows() == StepMap::Rows::steps) {
        selection_.setStep(row);
    }
}

void StepMapCanvas::moveRow(int by) {
    if (map_->rows() == StepMap::Rows::experts) {
        return; // views share no selected expert
    }
    const int count = static_cast<int>(map_->steps());
    const int now = map_->rows() == StepMap::Rows::layers ? selection_.layer() : selection_.step();
    const bool known = now >= 0 && now < count;
    const int from = known ? now : by < 0 ? count : -1;
    chooseRow(std::clamp(from + by, 0, count - 1));
}

void StepMapCanvas::keyPressEvent(QKeyEvent* event) {
    if (!map_) {
        QWidget::keyPressEvent(event);
        return;
    }
    const double middle =
        selection_.token() >= 0 ? static_cast<double>(selection_.token()) + 0.5 : (first_ + last_) / 2;
    switch (event->key()) {
    case Qt::Key_Left:
        moveToken(-1);
        break;
    case Qt::Key_Right:
        moveToken(1);
        break;
    case Qt::Key_Home:
        selection_.setToken(0);
        break;
    case Qt::Key_End:
        selection_.setToken(map_->tokens() - 1);
        break;
    case Qt::Key_Up:
        moveRow(-1);
        break;
    case Qt::Key_Down:
        moveRow(1);
        break;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoom(1.5, middle);
        break;
    case Qt::Key_Minus:
        zoom(1 / 1.5, middle);
        break;
    case Qt::Key_0:
        showAll();
        break;
    default:
        QWidget::keyPressEvent(event);
    }
}

void StepMapCanvas::leaveEvent(QEvent*) {
    selection_.setHover(-1);
    Q_EMIT cellHovered(-1, -1);
}

void StepMapCanvas::bringIntoView(qint64 token) {
    if (!map_ || token < 0 || token >= map_->tokens()) {
        return;
    }
    const auto at = static_cast<double>(token);
    if (at < first_ || at + 1 > last_) {
        const double extent = last_ - first_;
        setView(at + 0.5 - extent / 2, at + 0.5 + extent / 2);
    }
}

} // namespace ponderscope
