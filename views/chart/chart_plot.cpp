// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/chart/chart_plot.h"

#include "views/chart/custom_plot.h"
#include "views/chart/plot_legend.h"
#include "views/chart/plot_series.h"
#include "views/chart/plot_ticker.h"
#include "views/common/format.h"
#include "views/common/labels.h"

#include <QAccessibleWidget>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int gap = 4;
constexpr double least_share = 0.6; ///< share of the widget's area for the plot and its axis numbers
constexpr int click_distance = 4;   ///< pixels; a longer movement is a drag

/// The plot for screen readers: its description has the numbers, its value the current mark.
class PlotAccessible : public QAccessibleWidget {
public:
    explicit PlotAccessible(QWidget* widget) : QAccessibleWidget(widget, QAccessible::Chart) {}
    [[nodiscard]] QString text(QAccessible::Text what) const override {
        constexpr int most_lines = 1000;
        const auto* plot = static_cast<const ChartPlot*>(widget());
        if (what == QAccessible::Value) {
            return plot->textOf(plot->current());
        }
        if (what == QAccessible::Description) {
            return plot->hint().isEmpty() ? plot->table(most_lines) : plot->hint();
        }
        return QAccessibleWidget::text(what);
    }
};

QAccessibleInterface* accessible_plot(const QString& /*name*/, QObject* object) {
    auto* plot = qobject_cast<ChartPlot*>(object);
    return plot == nullptr ? nullptr : new PlotAccessible(plot);
}

/// The height of a plot of 40 pixels with the numbers and title of the axis below.
int least_canvas(const QFontMetrics& metrics) {
    return 5 * metrics.height() / 2 + 54;
}

QLabel* plain_label(QWidget* parent, bool wraps) {
    auto* label = new QLabel(parent);
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(wraps);
    return label;
}

} // namespace

ChartPlot::ChartPlot(Theme& theme, QWidget* parent)
    : QWidget(parent),
      theme_(theme),
      title_(plain_label(this, true)),
      upright_(new Readout(theme, this)),
      note_(plain_label(this, true)),
      hint_(plain_label(this, true)),
      legend_(new PlotLegend(theme, this)),
      plot_(new QCustomPlot(this)),
      marks_(chart_, hidden_) {
    static const bool known = [] {
        QAccessible::installFactory(accessible_plot);
        return true;
    }();
    Q_UNUSED(known);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    hint_->setAlignment(Qt::AlignCenter);
    upright_->setAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    plot_->plotLayout()->setMargins(QMargins(0, 0, 0, 0));
    for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
        connect(axis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this, &ChartPlot::showRange);
    }
    plot_->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    plot_->setSelectionRectMode(QCP::srmZoom);
    plot_->setNoAntialiasingOnDrag(true);
    // Rings have their own layer, so that a move does not redraw the chart.
    plot_->addLayer(u"marks"_s, plot_->layer(u"main"_s), QCustomPlot::limAbove);
    plot_->layer(u"marks"_s)->setMode(QCPLayer::lmBuffered);
    plot_->setMouseTracking(true);
    plot_->installEventFilter(this);
    connect(legend_, &PlotLegend::toggled, this, [this](const QString& series, bool shown) {
        hidden_.removeAll(series);
        if (!shown) {
            hidden_ << series;
        }
        showSeries();
        plot_->replot(QCustomPlot::rpQueuedReplot);
    });
    connect(&theme_, &Theme::changed, this, [this] {
        rebuild();
        arrange();
    });
    setAccessibleName(u"Chart"_s);
    setHint(u"This view has no data to draw."_s);
    dress();
}

void ChartPlot::setChart(Chart chart) {
    const bool same = hintText_.isEmpty() && chart.x.label == chart_.x.label &&
                      chart.y.label == chart_.y.label && chart.x.log == chart_.x.log &&
                      chart.y.log == chart_.y.log && chart.x.names == chart_.x.names;
    const bool keep = same && isZoomed();
    const AxisRange x = keep ? shownRange(true) : AxisRange();
    const AxisRange y = keep ? shownRange(false) : AxisRange();
    if (!same) {
        hidden_.clear();
        updateGeometry();
    }
    const auto place = [this](Mark mark) {
        const auto [series, i] = marks_.of(mark);
        return QPointF(series.x[i], series.y[i]);
    };
    const bool had = same && marks_.has(current_);
    const QPointF before = had ? place(current_) : QPointF();
    chart_ = std::move(chart);
    if (!had || !marks_.has(current_) || place(current_) != before) {
        current_ = {}; // otherwise the keys continue from this mark
    }
    selectedMark_ = {};
    if (chart_.empty()) {
        setHint(u"This view has no data to draw."_s);
        return;
    }
    hintText_.clear();
    hint_->clear();
    hint_->hide();
    plot_->show();
    title_->setText(chart_.title);
    note_->setText(chart_.note);
    setAccessibleName(!chart_.title.isEmpty()     ? chart_.title
                      : !chart_.y.label.isEmpty() ? chart_.y.label
                                                  : u"Chart"_s);
    rebuild();
    showAll();
    if (keep) {
        key_->setRange(x.low, x.high);
        value_->setRange(y.low, y.high);
    }
    arrange();
}

/// Rebuilds the plot: legend, axes, series.
void ChartPlot::rebuild() {
    plot_->clearPlottables();
    hovered_ = selected_ = nullptr;
    ChartInks inks = chart_inks(theme_);
    number_run_colours(inks, runColours_);
    legend_->setChart(chart_, inks, hidden_);
    sideways_ = liesOnItsSide();
    key_ = sideways_ ? plot_->yAxis : plot_->xAxis;
    value_ = sideways_ ? plot_->xAxis : plot_->yAxis;
    wholeX_ = ChartAxis(chart_, true, 12).range();
    wholeY_ = ChartAxis(chart_, false, 6).range();
    const auto scale = [&](QCPAxis* axis, const Chart::Axis& of, bool reversed) {
        axis->setTicker(QSharedPointer<QCPAxisTicker>(new PlotTicker(axis, of, theme_)));
        axis->setScaleType(of.log ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
        axis->setRangeReversed(of.reversed != reversed);
    };
    scale(key_, chart_.x, sideways_); // reversed if sideways: the first category is at the top
    scale(value_, chart_.y, false);
    marks_.setAxes(key_, value_);
    parts_ = plot_series(chart_, inks, theme_, key_, value_);
    showSeries();
    hovered_ = plot_ring(key_, value_, u"marks"_s);
    selected_ = plot_ring(key_, value_, u"marks"_s);
    dress();
}

void ChartPlot::showSeries() {
    for (std::size_t s = 0; s < parts_.size(); ++s) {
        for (QCPAbstractPlottable* part : parts_[s]) {
            part->setVisible(marks_.isShown(s));
        }
    }
}

void ChartPlot::setHint(const QString& hint) {
    chart_ = {};
    current_ = selectedMark_ = {};
    hintText_ = hint;
    hint_->setText(hint);
    hint_->setToolTip(hint);
    setToolTip({});
    for (QWidget* part : std::initializer_list<QWidget*>{title_, upright_, note_, legend_, plot_}) {
        part->hide();
    }
    hint_->show();
}

bool ChartPlot::liesOnItsSide() const {
    const QFontMetrics metrics(theme_.small());
    int widest = 0;
    for (const QString& name : chart_.x.names) {
        widest = std::max(widest, metrics.horizontalAdvance(name) + 10);
    }
    return !chart_.has(Chart::Mark::cell) && widest * static_cast<int>(chart_.x.names.size()) > width() - 60;
}

QSize ChartPlot::minimumSizeHint() const {
    constexpr int most_height = 240;
    const QFontMetrics metrics(theme_.small());
    const int rows = sideways_ ? static_cast<int>(chart_.x.names.size()) : 0;
    return {150, std::clamp(rows * metrics.height() + 60, least_canvas(metrics) + metrics.height() + 2 * gap,
                            most_height)};
}

/// Places the parts, and turns the plot upright or on its side, depending on the size.
void ChartPlot::arrange() {
    const QRect all = rect().adjusted(2, 2, -2, -2);
    hint_->setGeometry(all);
    if (!hintText_.isEmpty() || all.isEmpty()) {
        return;
    }
    if (liesOnItsSide() != sideways_) {
        rebuild();
        showAll();
        updateGeometry();
    }
    const QFontMetrics metrics(theme_.small());
    const int line = metrics.height() + gap; // height of the axis title, and of a legend line
    const int widest = legend_->isEmpty() ? all.width() : all.width() * 2 / 5;
    const int name = upright_->said().isEmpty()
                         ? 0
                         : std::min(metrics.horizontalAdvance(upright_->said()) + 3 * gap, widest);
    const double least = least_share * width() * height();
    int aside = legend_->widthBeside(chart_, all.width(), all.width() - name);
    aside = (all.width() - aside) * (all.height() - line) < least ? 0 : aside;
    const bool has_line = name > 0 || (aside == 0 && !legend_->isEmpty());
    const double plot_height = std::max(least / (all.width() - aside), 1.0 * least_canvas(metrics));
    double room = all.height() - (has_line ? line : 0) - plot_height;
    QRect inner = all;
    QStringList left_out;
    for (QLabel* label : {title_, note_}) {
        const int height = label->text().isEmpty() ? 0 : label->heightForWidth(all.width());
        const bool fits = height > 0 && height + gap <= room;
        label->setVisible(fits);
        if (fits) {
            room -= height + gap;
            label->setGeometry(all.left(), label == title_ ? all.top() : all.bottom() + 1 - height,
                               all.width(), height);
            inner.adjust(0, label == title_ ? height + gap : 0, 0, label == title_ ? 0 : -height - gap);
        } else if (height > 0) {
            left_out << label->text();
        }
    }
    setToolTip(plain_tip(left_out.join(u'\n')));
    legend_->setVisible(!legend_->isEmpty());
    if (aside > 0) {
        inner.setRight(inner.right() - aside);
        legend_->arrange(QRect(inner.right() + 1, inner.top(), aside, inner.height()), true);
    } else {
        legend_->arrange(QRect(inner.left() + name, inner.top(), inner.width() - name, line), false);
    }
    upright_->setVisible(name > 0);
    upright_->setGeometry(inner.left(), inner.top(), aside > 0 ? inner.width() : name, line);
    plot_->setGeometry(inner.adjusted(0, has_line ? line : 0, 0, 0));
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

QWidget* ChartPlot::canvas() const {
    return plot_;
}

QRectF ChartPlot::plotRect() const {
    return plot_->axisRect()->rect();
}

QString ChartPlot::table(int most) const {
    const QStringList lines = QString::fromStdString(chart_table(chart_)).split(u'\n');
    return lines.size() <= most ? lines.join(u'\n') : QStringList(lines.mid(0, most)).join(u'\n') + u"\n…"_s;
}

void ChartPlot::copyValues() const {
    QGuiApplication::clipboard()->setText(QString::fromStdString(chart_table(chart_)));
}

void ChartPlot::ring(QCPGraph* graph, Mark mark) {
    QVector<double> x;
    QVector<double> y;
    // The mark may belong to the previous chart.
    if (marks_.has(mark)) {
        const auto [series, i] = marks_.of(mark);
        if (series.mark != Chart::Mark::bar && key_->range().contains(series.x[i]) &&
            value_->range().contains(series.y[i])) {
            x.append(series.x[i]);
            y.append(series.y[i]);
        }
    }
    graph->setData(x, y);
}

void ChartPlot::setHovered(Mark mark) {
    if (hovered_ != nullptr && hintText_.isEmpty() && mark != current_) {
        current_ = mark;
        ring(hovered_, mark);
        plot_->layer(u"marks"_s)->replot();
    }
}

void ChartPlot::setSelected(Mark mark) {
    if (selected_ != nullptr && hintText_.isEmpty() && mark != selectedMark_) {
        selectedMark_ = mark;
        ring(selected_, mark);
        plot_->layer(u"marks"_s)->replot();
    }
}

/// Makes \p mark the current mark, under the cursor or by keys.
void ChartPlot::point(Mark mark, bool tell) {
    if (mark == current_) {
        return;
    }
    setHovered(mark);
    plot_->setCursor(mark.isValid() ? Qt::PointingHandCursor : Qt::ArrowCursor);
    if (!mark.isValid()) {
        QToolTip::hideText();
    } else if (tell) {
        const QPointF at = marks_.box(mark).center();
        QToolTip::showText(plot_->mapToGlobal(at.toPoint()), plain_tip(textOf(mark)), this);
    }
    QAccessibleValueChangeEvent changed(this, textOf(mark));
    QAccessible::updateAccessibility(&changed);
    Q_EMIT markHovered(mark.series, mark.index);
}

void ChartPlot::keyPressEvent(QKeyEvent* event) {
    if (!hintText_.isEmpty()) {
        QWidget::keyPressEvent(event);
        return;
    }
    constexpr double a_step = 0.2;
    constexpr double closer = 0.8;
    const bool shift = event->modifiers().testFlag(Qt::ShiftModifier);
    const auto arrow = [&](int x, int y) {
        if (shift) {
            pan(QPointF(x, y) * a_step);
        } else if (const Mark next = marks_.beside(current_, x, y); next.isValid()) {
            point(next, true);
        }
    };
    if (event->matches(QKeySequence::Copy)) {
        copyValues();
        return;
    }
    switch (const int key = event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
        arrow(key == Qt::Key_Left ? -1 : 1, 0);
        break;
    case Qt::Key_Up:
    case Qt::Key_Down:
        arrow(0, key == Qt::Key_Up ? -1 : 1);
        break;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoom(closer);
        break;
    case Qt::Key_Minus:
        zoom(1 / closer);
        break;
    case Qt::Key_Home:
    case Qt::Key_0:
        showAll();
        break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
        if (current_.isValid()) {
            Q_EMIT markClicked(current_.series, current_.index);
        }
        break;
    default:
        QWidget::keyPressEvent(event);
    }
}

bool ChartPlot::eventFilter(QObject* watched, QEvent* event) {
    if (watched != plot_ || !hintText_.isEmpty()) {
        return QWidget::eventFilter(watched, event);
    }
    const auto* mouse = static_cast<QMouseEvent*>(event); // valid only for mouse events
    switch (event->type()) {
    case QEvent::MouseButtonPress:
        pressed_ = mouse->position();
        // QCustomPlot drags a rectangle with any button; Shift moves the plot instead.
        plot_->setSelectionRectMode(mouse->button() == Qt::LeftButton &&
                                            !mouse->modifiers().testFlag(Qt::ShiftModifier)
                                        ? QCP::srmZoom
                                        : QCP::srmNone);
        break;
    case QEvent::MouseMove:
        if (mouse->buttons() == Qt::NoButton) {
            point(markAt(mouse->position()), true);
        }
        break;
    case QEvent::MouseButtonRelease:
        if (mouse->button() == Qt::LeftButton &&
            (mouse->position() - pressed_).manhattanLength() < click_distance) {
            const Mark mark = markAt(mouse->position());
            if (mark.isValid()) {
                Q_EMIT markClicked(mark.series, mark.index);
            }
        }
        break;
    case QEvent::MouseButtonDblClick:
        showAll();
        break;
    case QEvent::Leave:
        point({}, false);
        break;
    case QEvent::ToolTip: // keep the mark's tooltip
        return current_.isValid();
    default:
        break;
    }
    return QWidget::eventFilter(watched, event);
}

void ChartPlot::contextMenuEvent(QContextMenuEvent* event) {
    if (hintText_.isEmpty()) {
        auto* menu = new QMenu(this);
        menu->setAttribute(Qt::WA_DeleteOnClose);
        menu->addAction(u"Show Everything"_s, this, &ChartPlot::showAll)->setEnabled(isZoomed());
        menu->addAction(u"Copy Values as CSV"_s, this, &ChartPlot::copyValues);
        menu->popup(event->globalPos());
    }
}

void ChartPlot::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.colours().panel);
    if (hasFocus()) {
        painter.setPen(theme_.colours().a);
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
}

void ChartPlot::resizeEvent(QResizeEvent*) {
    arrange();
}

void ChartPlot::dress() {
    const Palette& colours = theme_.colours();
    const bool contrast = theme_.appearance() == Appearance::contrast;
    for (QLabel* label : {title_, note_, hint_}) {
        QPalette palette = label->palette();
        palette.setColor(QPalette::WindowText, label == title_ ? colours.text : colours.soft);
        label->setPalette(palette);
        label->setFont(label == title_ ? theme_.strong() : label == hint_ ? theme_.body() : theme_.small());
    }
    plot_->setBackground(QBrush(colours.panel));
    for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
        const bool horizontal = axis == plot_->xAxis;
        axis->setBasePen(horizontal ? QPen(colours.soft) : QPen(Qt::NoPen));
        axis->setTickPen(Qt::NoPen);
        axis->setSubTickPen(Qt::NoPen);
        axis->setTickLength(0);
        axis->setTickLabelPadding(horizontal ? 4 : 6);
        axis->setTickLabelFont(theme_.small());
        axis->setTickLabelColor(colours.soft);
        axis->setLabelFont(theme_.small());
        axis->setLabelColor(colours.soft);
        axis->setLabelPadding(2);
        // A weak grid, so that series stand out, also in high contrast.
        axis->grid()->setPen(QPen(contrast ? colours.faint : colours.line));
        axis->grid()->setZeroLinePen(Qt::NoPen);
        axis->grid()->setVisible(horizontal == sideways_);
    }
    QColor veil = colours.a;
    veil.setAlphaF(0.15F);
    plot_->selectionRect()->setPen(QPen(colours.a));
    plot_->selectionRect()->setBrush(veil);
    if (hovered_ != nullptr) {
        const QBrush inside(Qt::NoBrush);
        hovered_->setScatterStyle(
            QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(colours.text, 1.5), inside, 10));
        selected_->setScatterStyle(
            QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(colours.a, 2.5), inside, 11));
        // Leave space for the last label of the horizontal axis.
        const ChartAxis across(chart_, !sideways_, 12);
        int half = 0;
        for (const double tick : across.ticks()) {
            half = std::max(half, QFontMetrics(theme_.small()).horizontalAdvance(across.label(tick)) / 2);
        }
        // Leave space for the top number of the vertical axis: QCustomPlot omits labels that do not fit.
        const int above = QFontMetrics(theme_.small()).height() / 2 + 2;
        plot_->axisRect()->setMinimumMargins(QMargins(4, above, std::clamp(half + 2, 8, 60), 4));
        ring(hovered_, current_);
        ring(selected_, selectedMark_);
        showRange();
    }
}

/// Updates the plot after a change of an axis range: limits the range to the data, sets axis titles, clips.
void ChartPlot::showRange() {
    if (hovered_ == nullptr || !hintText_.isEmpty()) {
        return; // under construction
    }
    for (const auto& [axis, whole] : {std::pair(key_, wholeX_), std::pair(value_, wholeY_)}) {
        const QCPRange range = axis->range().bounded(whole.low, whole.high);
        if (range.size() > 0 && range != axis->range()) {
            axis->setRange(range); // emits rangeChanged, which calls this function again
            return;
        }
    }
    const auto title = [&](QCPAxis* axis, const Chart::Axis& of) {
        return ChartAxis(of, {axis->range().lower, axis->range().upper}, 6).title();
    };
    const QString x = title(key_, chart_.x);
    const QString y = title(value_, chart_.y);
    upright_->say(sideways_ ? x : y);
    plot_->xAxis->setLabel(sideways_ ? y : x);
    ring(hovered_, current_);
    ring(selected_, selectedMark_);
}

bool ChartPlot::isZoomed() const {
    const auto differs = [](AxisRange a, AxisRange b) {
        const double slack = 1e-9 * (b.high - b.low);
        return std::abs(a.low - b.low) > slack || std::abs(a.high - b.high) > slack;
    };
    return key_ != nullptr && (differs(shownRange(true), wholeX_) || differs(shownRange(false), wholeY_));
}

AxisRange ChartPlot::shownRange(bool horizontal_data) const {
    const QCPRange range = (horizontal_data ? key_ : value_)->range();
    return {range.lower, range.upper};
}

void ChartPlot::showAll() {
    if (key_ != nullptr) {
        key_->setRange(wholeX_.low, wholeX_.high);
        value_->setRange(wholeY_.low, wholeY_.high);
        showRange();
        plot_->replot(QCustomPlot::rpQueuedReplot);
    }
}

void ChartPlot::zoom(double factor) {
    if (key_ != nullptr) {
        key_->scaleRange(factor);
        value_->scaleRange(factor);
        plot_->replot(QCustomPlot::rpQueuedReplot);
    }
}

void ChartPlot::pan(QPointF shares) {
    const QRect rect = plot_->axisRect()->rect();
    const auto move = [](QCPAxis* axis, double pixels) {
        const double low = axis->coordToPixel(axis->range().lower) + pixels;
        const double high = axis->coordToPixel(axis->range().upper) + pixels;
        axis->setRange(axis->pixelToCoord(low), axis->pixelToCoord(high));
    };
    move(plot_->xAxis, shares.x() * rect.width());
    move(plot_->yAxis, shares.y() * rect.height());
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

} // namespace ponderscope
