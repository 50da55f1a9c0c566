// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/minimap.h"

#include "views/common/theme.h"
#include "views/text/quantity.h"
#include "views/text/text_layout.h"

#include <QMouseEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int columns = 7;      ///< cells across a line
constexpr int tallest_line = 5; ///< pixels, so that a short text does not fill the whole height
constexpr int strip_edge = 8;
/// A row of pixels shows the mean of at most this many evenly spaced lines, with hundreds of tokens.
constexpr qint64 most_lines_a_row = 24;

} // namespace

Minimap::Minimap(Theme& theme, const TextLayout& layout, const TokenValues& values, QWidget* parent)
    : QWidget(parent), theme_(theme), layout_(layout), values_(values) {
    setAccessibleName(u"Overview of the sequence"_s);
    setToolTip(u"The whole sequence. Click or drag to go to a position"_s);
    setCursor(Qt::PointingHandCursor);
    connect(&theme, &Theme::changed, this, &Minimap::refresh);
}

void Minimap::setVisiblePart(double from, double to) {
    from_ = from;
    to_ = to;
    update();
}

void Minimap::setMarks(std::vector<qint64> tokens) {
    marks_ = std::move(tokens);
    update();
}

void Minimap::refresh() {
    stale_ = true;
    update();
}

double Minimap::contentHeight() const {
    return std::min<double>(height() - 2 * strip_edge,
                            static_cast<double>(layout_.expectedLineCount()) * tallest_line);
}

void Minimap::render() {
    stale_ = false;
    const int rows = static_cast<int>(contentHeight());
    if (rows <= 0 || layout_.lineCount() == 0) {
        image_ = QImage();
        return;
    }
    const auto lines = static_cast<double>(layout_.expectedLineCount());
    const ColourMap& map = map_of(values_, theme_);
    // A cell shows the mean of its tokens, or the class of the last one.
    const bool classes = !values_.classes.isEmpty();
    image_ = QImage(columns, rows, QImage::Format_RGB32);
    image_.fill(theme_.colours().panel);
    std::array<double, columns> sums{};
    std::array<int, columns> counts{};
    for (int row = 0; row < rows; ++row) {
        sums.fill(0);
        counts.fill(0);
        const auto first = static_cast<qint64>(std::floor(row * lines / rows));
        const auto end = std::max(first + 1, static_cast<qint64>(std::floor((row + 1) * lines / rows)));
        const qint64 stride = (end - first) / most_lines_a_row + 1;
        for (qint64 line = first; line < std::min(end, layout_.lineCount()); line += stride) {
            const qint64 from = layout_.firstToken(line);
            const qint64 to =
                std::min<qint64>(layout_.endToken(line), static_cast<qint64>(values_.values.size()));
            if (to <= from) {
                continue;
            }
            const double scale = static_cast<double>(columns) / static_cast<double>(to - from);
            for (qint64 token = from; token < to; ++token) {
                const double at = values_.scale.position(values_.values[static_cast<std::size_t>(token)]);
                if (!std::isnan(at)) {
                    const auto column = static_cast<std::size_t>(static_cast<double>(token - from) * scale);
                    sums[column] = classes ? at : sums[column] + at;
                    counts[column] = classes ? 1 : counts[column] + 1;
                }
            }
        }
        auto* pixels = reinterpret_cast<QRgb*>(image_.scanLine(row));
        for (std::size_t column = 0; column < columns; ++column) {
            if (counts[column] > 0) {
                pixels[column] = map.at(sums[column] / counts[column]);
            }
        }
    }
}

void Minimap::paintEvent(QPaintEvent*) {
    if (stale_) {
        render();
    }
    QPainter painter(this);
    painter.fillRect(rect(), theme_.colours().panel);
    if (image_.isNull()) {
        return;
    }
    const double tall = contentHeight();
    const QRectF strip(strip_edge, strip_edge, width() - 2 * strip_edge, tall);
    painter.drawImage(strip, image_);
    if (!marks_.empty()) {
        const auto lines = static_cast<double>(std::max<qint64>(layout_.expectedLineCount(), 1));
        int last = -1;
        for (const qint64 token : marks_) {
            const int y = strip_edge +
                          static_cast<int>((static_cast<double>(layout_.lineOf(token)) + 0.5) / lines * tall);
            if (y != last && y >= strip_edge) {
                painter.fillRect(QRectF(width() - strip_edge + 1, y - 1, strip_edge - 3, 2),
                                 theme_.colours().a);
                last = y;
            }
        }
    }
    if (from_ > 0 || to_ < 1) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(theme_.colours().a, 1.5));
        painter.setBrush(Qt::NoBrush);
        const double top = strip_edge + from_ * tall;
        const double bottom = strip_edge + to_ * tall;
        const double extra = std::max(0.0, (12 - (bottom - top)) / 2); // thick enough to drag
        painter.drawRoundedRect(QRectF(4, top - extra, width() - 8, bottom - top + 2 * extra), 3, 3);
    }
}

void Minimap::drag(double y) {
    const double tall = contentHeight();
    if (tall > 0) {
        Q_EMIT wanted(std::clamp((y - strip_edge) / tall, 0.0, 1.0));
    }
}

void Minimap::mouseMoveEvent(QMouseEvent* event) {
    if ((event->buttons() & Qt::LeftButton) != 0) {
        drag(event->position().y());
    }
}

} // namespace ponderscope
