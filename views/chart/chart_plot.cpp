// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/chart/chart_plot.h"

#include "views/chart/custom_plot.h"
#include "views/chart/plot_legend.h"
#include "views/common/format.h"
#include "views/common/labels.h"

#include <QAccessibleWidget>
#include <QBoxLayout>
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

constexpr double reach = 9; ///< pixels around a mark that still mean it
constexpr int least_plot_width = 170;
constexpr int least_plot_height = 105;
constexpr int click_distance = 4; ///< a longer way of the mouse drags

/// The numbers of a plot for screen readers: as its description; its value is the current mark.
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
      body_(new QWidget(this)),
      legend_(new PlotLegend(theme, body_)),
      plot_(new QCustomPlot(body_)) {
    static const bool known = [] {
        QAccessible::installFactory(accessible_plot);
        return true;
    }();
    Q_UNUSED(known);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    hint_->setAlignment(Qt::AlignCenter);
    upright_->setAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    plot_->setMinimumSize(least_plot_width, least_plot_height);
    auto* column = new QVBoxLayout;
    column->setSpacing(2);
    column->addWidget(upright_);
    column->addWidget(plot_, 1);
    middle_ = new QBoxLayout(QBoxLayout::TopToBottom, body_);
    middle_->setContentsMargins(0, 0, 0, 0);
    middle_->setSpacing(4);
    middle_->addWidget(legend_);
    middle_->addLayout(column, 1);
    auto* all = new QVBoxLayout(this);
    all->setContentsMargins(2, 2, 2, 2);
    all->setSpacing(3);
    all->addWidget(title_);
    all->addWidget(body_, 1);
    all->addWidget(note_);
    all->addWidget(hint_, 1);

    plot_->plotLayout()->setMargins(QMargins(0, 0, 0, 0));
    setUpAxes();
    plot_->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    plot_->setSelectionRectMode(QCP::srmZoom);
    plot_->setNoAntialiasingOnDrag(true);
    // Marks lie on a layer of their own, so that moving them does not draw the chart again.
    plot_->addLayer(u"marks"_s, plot_->layer(u"main"_s), QCustomPlot::limAbove);
    plot_->layer(u"marks"_s)->setMode(QCPLayer::lmBuffered);
    plot_->setMouseTracking(true);
    plot_->installEventFilter(this);
    connect(legend_, &PlotLegend::toggled, this, [this](const QString& series, bool shown) {
        hidden_.removeAll(series);
        if (!shown) {
            hidden_ << series;
        }
        for (std::size_t s = 0; s < parts_.size(); ++s) {
            for (QCPAbstractPlottable* part : parts_[s]) {
                part->setVisible(isSeriesShown(s));
            }
        }
        plot_->replot(QCustomPlot::rpQueuedReplot);
    });
    connect(&theme_, &Theme::changed, this, [this] {
        rebuild();
        arrange();
    });
    setAccessibleName(u"Chart"_s);
    setHint(u"There is nothing to draw here."_s);
    dress();
}

ChartPlot::~ChartPlot() = default;

void ChartPlot::setChart(Chart chart) {
    const bool same = hintText_.isEmpty() && chart.x.label == chart_.x.label &&
                      chart.y.label == chart_.y.label && chart.x.log == chart_.x.log &&
                      chart.y.log == chart_.y.log && chart.x.names == chart_.x.names;
    const bool keep = same && isZoomed();
    const AxisRange x = keep ? shownRange(true) : AxisRange();
    const AxisRange y = keep ? shownRange(false) : AxisRange();
    if (!same) {
        hidden_.clear();
    }
    chart_ = std::move(chart);
    current_ = selectedMark_ = {};
    if (chart_.empty()) {
        setHint(u"There is nothing to draw here."_s);
        return;
    }
    hintText_.clear();
    hint_->hide();
    body_->show();
    for (const auto& [label, text] : {std::pair(title_, chart_.title), std::pair(note_, chart_.note)}) {
        label->setText(text);
        label->setVisible(!text.isEmpty());
    }
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

void ChartPlot::fillLegend() {
    inks_ = chart_inks(theme_);
    number_run_colours(inks_, runColours_);
    legend_->setChart(chart_, inks_, hidden_);
}

void ChartPlot::setHint(const QString& hint) {
    chart_ = {};
    current_ = selectedMark_ = {};
    hintText_ = hint;
    hint_->setText(hint);
    hint_->show();
    for (QWidget* part : {static_cast<QWidget*>(title_), static_cast<QWidget*>(note_), body_}) {
        part->hide();
    }
}

bool ChartPlot::isSeriesShown(std::size_t series) const {
    const Chart::Series& one = chart_.series[series];
    return std::none_of(chart_.series.begin(), chart_.series.end(), [&](const Chart::Series& listed) {
        return listed.listed && hidden_.contains(listed.name) && is_hidden_with(listed, one);
    });
}

bool ChartPlot::liesOnItsSide() const {
    const bool cells = std::any_of(chart_.series.begin(), chart_.series.end(),
                                   [](const Chart::Series& one) { return one.mark == Chart::Mark::cell; });
    const QFontMetrics metrics(theme_.small());
    int widest = 0;
    for (const QString& name : chart_.x.names) {
        widest = std::max(widest, metrics.horizontalAdvance(name) + 10);
    }
    return !cells && widest * static_cast<int>(chart_.x.names.size()) > width() - 60;
}

/// Places the legend and turns the plot upright or on its side, depending on the size.
void ChartPlot::arrange() {
    if (!hintText_.isEmpty()) {
        return;
    }
    const int above = (title_->isHidden() ? 0 : title_->sizeHint().height()) +
                      (note_->isHidden() ? 0 : note_->heightForWidth(width()));
    const bool beside = legend_->arrange(chart_, {width() - 4, std::max(60, height() - above - 10)});
    middle_->setDirection(beside ? QBoxLayout::RightToLeft : QBoxLayout::TopToBottom);
    if (liesOnItsSide() != sideways_) {
        rebuild();
        showAll();
    }
    const int rows = sideways_ ? static_cast<int>(chart_.x.names.size()) : 0;
    plot_->setMinimumHeight(
        std::max(least_plot_height, rows * QFontMetrics(theme_.small()).height() + (rows > 0 ? 36 : 0)));
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

QWidget* ChartPlot::canvas() const {
    return plot_;
}

QRectF ChartPlot::plotRect() const {
    return plot_->axisRect()->rect();
}

QPointF ChartPlot::pixelOf(double x, double y) const {
    const double along = key_->coordToPixel(x);
    const double across = value_->coordToPixel(y);
    return sideways_ ? QPointF(across, along) : QPointF(along, across);
}

QPointF ChartPlot::positionOf(Mark mark) const {
    const Chart::Series& series = chart_.series[static_cast<std::size_t>(mark.series)];
    const auto i = static_cast<std::size_t>(mark.index);
    return pixelOf(series.x[i], series.y[i]);
}

/// The area where a mark reacts to the cursor: a point or a position on a line, the whole column of a bar, a
/// cell.
QRectF ChartPlot::boxOf(Mark mark) const {
    const Chart::Series& series = chart_.series[static_cast<std::size_t>(mark.series)];
    const auto i = static_cast<std::size_t>(mark.index);
    const double x = series.x[i];
    const double y = series.y[i];
    if (series.mark == Chart::Mark::cell) {
        return QRectF(pixelOf(x - chart_.dx / 2, y - chart_.dy / 2),
                      pixelOf(x + chart_.dx / 2, y + chart_.dy / 2))
            .normalized();
    }
    if (series.mark == Chart::Mark::bar) {
        const double half = chart_.dx / 2;
        const AxisRange range = shownRange(false);
        return QRectF(pixelOf(x - half, range.low), pixelOf(x + half, range.high)).normalized();
    }
    const double radius = series.strong ? 6 : 0; // a ring answers as a whole, before what it encircles
    return QRectF(pixelOf(x, y), QSizeF(0, 0)).adjusted(-radius, -radius, radius, radius);
}

ChartPlot::Mark ChartPlot::markAt(QPointF position) const {
    Mark best;
    if (key_ == nullptr || !hintText_.isEmpty() ||
        !plotRect().adjusted(-reach, -reach, reach, reach).contains(position)) {
        return best;
    }
    double least = reach;
    double width = 0;
    for (std::size_t s = 0; s < chart_.series.size(); ++s) {
        const Chart::Series& series = chart_.series[s];
        if (series.mark == Chart::Mark::band || !isSeriesShown(s)) {
            continue;
        }
        const bool cells = series.mark == Chart::Mark::cell;
        for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
            if (!has(series.x[i], series.y[i]) ||
                (cells && (i >= series.value.size() || !std::isfinite(series.value[i])))) {
                continue;
            }
            const Mark mark{static_cast<int>(s), static_cast<int>(i)};
            const QRectF box = boxOf(mark);
            const double x = std::max({box.left() - position.x(), position.x() - box.right(), 0.0});
            const double y = std::max({box.top() - position.y(), position.y() - box.bottom(), 0.0});
            const double away = std::hypot(x, y);
            if (away <= least && (away < least || !best.isValid() || series.strong || box.width() < width)) {
                least = away;
                width = box.width();
                best = mark;
            }
        }
    }
    return best;
}

QString ChartPlot::textOf(Mark mark) const {
    if (!mark.isValid()) {
        return {};
    }
    const Chart::Series& series = chart_.series[static_cast<std::size_t>(mark.series)];
    const auto i = static_cast<std::size_t>(mark.index);
    if (i < series.labels.size() && !series.labels[i].isEmpty()) {
        return series.labels[i];
    }
    const auto value = [](const Chart::Axis& axis, double at) {
        const bool named = at >= 0 && at < static_cast<double>(axis.names.size());
        return named ? axis.names[static_cast<std::size_t>(at)] : format_number(at);
    };
    const QString place = u"%1 · %2"_s.arg(value(chart_.x, series.x[i]), value(chart_.y, series.y[i]));
    return series.name.isEmpty() ? place : series.name + u'\n' + place;
}

QString ChartPlot::linkOf(Mark mark) const {
    const auto& links = chart_.series[static_cast<std::size_t>(mark.series)].links;
    return static_cast<std::size_t>(mark.index) < links.size() ? links[static_cast<std::size_t>(mark.index)]
                                                               : QString();
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
    const auto of = static_cast<std::size_t>(mark.series);
    const auto i = static_cast<std::size_t>(mark.index);
    // A mark may be of a chart that was shown before this one.
    if (mark.isValid() && of < chart_.series.size() && i < chart_.series[of].x.size()) {
        const Chart::Series& series = chart_.series[of];
        const AxisRange wide = shownRange(true);
        const AxisRange high = shownRange(false);
        const bool point = series.mark == Chart::Mark::point || series.mark == Chart::Mark::line;
        if (point && series.x[i] >= wide.low && series.x[i] <= wide.high && series.y[i] >= high.low &&
            series.y[i] <= high.high) {
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

/// The mark under the cursor or of the keys is another one.
void ChartPlot::point(Mark mark, bool tell) {
    if (mark == current_) {
        return;
    }
    setHovered(mark);
    plot_->setCursor(mark.isValid() ? Qt::PointingHandCursor : Qt::ArrowCursor);
    if (!mark.isValid()) {
        QToolTip::hideText();
    } else if (tell) {
        const QPointF at = boxOf(mark).center();
        QToolTip::showText(plot_->mapToGlobal(at.toPoint()), plain_tip(textOf(mark)), this);
    }
    QAccessibleValueChangeEvent changed(this, textOf(mark));
    QAccessible::updateAccessibility(&changed);
    Q_EMIT markHovered(mark.series, mark.index);
}

/// Moves to another mark of the series, or to the same place of another series.
void ChartPlot::step(int along, int across) {
    const auto there = [&](int s, int i) {
        const Chart::Series& series = chart_.series[static_cast<std::size_t>(s)];
        return series.mark != Chart::Mark::band && isSeriesShown(static_cast<std::size_t>(s)) && i >= 0 &&
               i < static_cast<int>(std::min(series.x.size(), series.y.size())) &&
               has(series.x[static_cast<std::size_t>(i)], series.y[static_cast<std::size_t>(i)]);
    };
    const int count = static_cast<int>(chart_.series.size());
    Mark to = current_;
    if (!to.isValid()) {
        to = {0, -1};
        along = 1;
        across = 0;
    }
    for (int s = to.series; across != 0 && s + across >= 0 && s + across < count;) {
        s += across;
        const Chart::Series& series = chart_.series[static_cast<std::size_t>(s)];
        const int last = static_cast<int>(std::min(series.x.size(), series.y.size())) - 1;
        if (there(s, std::min(to.index, last))) {
            point({s, std::min(to.index, last)}, true);
            return;
        }
    }
    for (int s = to.series; along != 0 && s >= 0 && s < count; s += current_.isValid() ? count : 1) {
        const int size = static_cast<int>(chart_.series[static_cast<std::size_t>(s)].x.size());
        for (int i = to.index + along; i >= 0 && i < size; i += along) {
            if (there(s, i)) {
                point({s, i}, true);
                return;
            }
        }
    }
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
        } else {
            step(x, y);
        }
    };
    if (event->matches(QKeySequence::Copy)) {
        copyValues();
        return;
    }
    switch (event->key()) {
    case Qt::Key_Left:
        arrow(-1, 0);
        break;
    case Qt::Key_Right:
        arrow(1, 0);
        break;
    case Qt::Key_Up:
        arrow(0, -1);
        break;
    case Qt::Key_Down:
        arrow(0, 1);
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
    const auto* mouse = static_cast<QMouseEvent*>(event); // where the event is one
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

void ChartPlot::focusInEvent(QFocusEvent*) {
    update();
}

void ChartPlot::focusOutEvent(QFocusEvent*) {
    update();
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

} // namespace ponderscope
