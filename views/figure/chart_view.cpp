// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/chart_view.h"

#include "core/base/error.h"
#include "views/common/format.h"
#include "views/figure/backends.h"
#include "views/figure/parts.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

constexpr double reach = 9; ///< pixels around a mark that still mean it
constexpr double letter_size = 12.5;
constexpr int note_lines = 3;
constexpr int least_width = 170;
constexpr int least_plot = 70; ///< pixels; a panel that is lower scrolls

/// One typeface for all charts of the window; null where it is not installed.
const figure::Fonts* chart_fonts() {
    static const std::unique_ptr<figure::Fonts> fonts = []() -> std::unique_ptr<figure::Fonts> {
        try {
            return std::make_unique<figure::Fonts>(figure::Fonts::load());
        } catch (const Error&) {
            return nullptr;
        }
    }();
    return fonts.get();
}

} // namespace

ChartView::ChartView(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    connect(&theme_, &Theme::changed, this, [this] {
        list_.reset();
        update();
    });
}

ChartView::~ChartView() = default;

void ChartView::setChart(figure::Chart chart) {
    chart_ = std::move(chart);
    hint_.clear();
    list_.reset();
    setAccessibleName(chart_.title);
    needHeight();
    update();
}

const figure::DisplayList& ChartView::drawn() {
    if (!list_) {
        lay();
    }
    return *list_;
}

figure::Style ChartView::style(const figure::Fonts& fonts) const {
    figure::FigureSpec spec;
    spec.theme = theme_.dark() ? "dark" : "light";
    spec.font_size = letter_size; // a point of the list is a pixel here
    figure::Style made(spec, fonts);
    Palette colours = theme_.colours(); // a window has more of them than paper: high contrast
    if (theme_.appearance() == Appearance::contrast) {
        colours.line = colours.faint; // what is drawn stands out from the grid behind it
    }
    made.setColours(colours);
    made.cells = theme_.magnitudeMap();
    made.hairline = 1;
    return made;
}

/// Names and legend of a chart ask for a height, of which the layout learns when it changes.
void ChartView::needHeight() {
    const figure::Fonts* fonts = chart_fonts();
    int needed = least_plot + 30;
    if (fonts != nullptr && !chart_.empty()) {
        const figure::Style look = style(*fonts);
        needed = static_cast<int>(std::ceil(figure::readable_height(look, std::max(least_width, width()) - 2,
                                                                    chart_, note_lines, least_plot)));
    }
    if (needed != leastHeight_) {
        leastHeight_ = needed;
        updateGeometry();
    }
}

void ChartView::setHint(const QString& hint) {
    chart_ = {};
    hint_ = hint;
    list_.reset();
    setAccessibleDescription(hint);
    update();
}

QSize ChartView::sizeHint() const {
    return {260, leastHeight_}; // it takes what there is
}

QSize ChartView::minimumSizeHint() const {
    return {least_width, leastHeight_};
}

void ChartView::lay() {
    list_ = std::make_unique<figure::DisplayList>(QSizeF(size()));
    places_ = {};
    const figure::Fonts* fonts = chart_fonts();
    if (fonts == nullptr || chart_.empty()) {
        return;
    }
    places_ =
        figure::draw_chart(*list_, style(*fonts), QRectF(rect()).adjusted(1, 1, -1, -1), chart_, note_lines);
}

const figure::ChartPlaces& ChartView::places() {
    if (!list_) {
        lay();
    }
    return places_;
}

void ChartView::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.colours().panel);
    const figure::Fonts* fonts = chart_fonts();
    if (!hint_.isEmpty() || fonts == nullptr || chart_.empty()) {
        painter.setFont(theme_.body());
        painter.setPen(theme_.colours().soft);
        const QString text = !hint_.isEmpty() ? hint_
                             : fonts == nullptr
                                 ? tr("Charts need the typeface DejaVu Sans (package fonts-dejavu-core).")
                                 : tr("There is nothing to draw here.");
        painter.drawText(rect().adjusted(10, 6, -10, -6), Qt::AlignCenter | Qt::TextWordWrap, text);
        return;
    }
    if (!list_) {
        lay();
    }
    painter.setRenderHint(QPainter::Antialiasing);
    figure::paint(*list_, *fonts, painter);
}

void ChartView::mouseMoveEvent(QMouseEvent* event) {
    const auto* place = places().at(event->position(), reach);
    const int series = place == nullptr ? -1 : static_cast<int>(place->series);
    const int index = place == nullptr ? -1 : static_cast<int>(place->index);
    if (series != series_ || index != index_) {
        series_ = series;
        index_ = index;
        Q_EMIT markHovered(series, index);
    }
}

void ChartView::mousePressEvent(QMouseEvent* event) {
    const auto* place = places().at(event->position(), reach);
    if (event->button() == Qt::LeftButton && place != nullptr) {
        Q_EMIT markClicked(static_cast<int>(place->series), static_cast<int>(place->index));
    }
}

void ChartView::leaveEvent(QEvent*) {
    series_ = -1;
    index_ = -1;
    Q_EMIT markHovered(-1, -1);
}

void ChartView::resizeEvent(QResizeEvent*) {
    list_.reset();
    needHeight();
}

bool ChartView::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const auto* place = places().at(help->pos(), reach);
        QString text;
        if (place != nullptr) {
            const auto& labels = chart_.series[place->series].labels;
            text = place->index < labels.size() ? labels[place->index] : chart_.series[place->series].name;
        }
        if (text.isEmpty()) {
            QToolTip::hideText();
        } else {
            QToolTip::showText(help->globalPos(), plain_tip(text), this);
        }
        return true;
    }
    return QWidget::event(event);
}

} // namespace ponderscope
