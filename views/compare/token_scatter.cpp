// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/token_scatter.h"

#include "views/common/format.h"

#include <QLabel>
#include <QMouseEvent>
#include <QVBoxLayout>

// Its header has Qt's short keywords, which this tree is compiled without.
#define signals Q_SIGNALS
#define foreach Q_FOREACH
#include <qcustomplot.h>
#undef signals
#undef foreach

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

constexpr std::size_t most_points = 30'000; ///< what replots within a frame

} // namespace

TokenScatter::TokenScatter(ViewContext context, QWidget* parent)
    : QWidget(parent), selection_(context.selection), theme_(context.theme), plot_(new QCustomPlot(this)) {
    hint_ = new QLabel(tr("Choose a run B over the same text\nto see token against token."), this);
    hint_->setAlignment(Qt::AlignCenter);
    hint_->setForegroundRole(QPalette::PlaceholderText);
    hint_->setWordWrap(true);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(plot_);
    layout->addWidget(hint_);
    plot_->hide();
    setMinimumSize(180, 160);
    plot_->setAccessibleName(tr("NLL of the two runs, token against token"));
    plot_->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    plot_->setMouseTracking(true);
    plot_->installEventFilter(this);
    plot_->setNoAntialiasingOnDrag(true);

    // Marks lie on a layer of their own, so that moving them does not draw the points again.
    plot_->addLayer(QStringLiteral("marks"), plot_->layer(QStringLiteral("main")), QCustomPlot::limAbove);
    plot_->layer(QStringLiteral("marks"))->setMode(QCPLayer::lmBuffered);
    diagonal_ = new QCPItemLine(plot_);
    diagonal_->start->setCoords(0, 0);
    points_ = plot_->addGraph();
    points_->setLineStyle(QCPGraph::lsNone);
    points_->setAdaptiveSampling(false);
    hovered_ = plot_->addGraph();
    selected_ = plot_->addGraph();
    for (QCPGraph* graph : {hovered_, selected_}) {
        graph->setLineStyle(QCPGraph::lsNone);
        graph->setLayer(QStringLiteral("marks"));
    }
    facts_ = new QCPItemText(plot_);
    facts_->position->setType(QCPItemPosition::ptAxisRectRatio);
    facts_->position->setCoords(0.03, 0.03);
    facts_->setPositionAlignment(Qt::AlignLeft | Qt::AlignTop);
    facts_->setTextAlignment(Qt::AlignLeft);
    facts_->setPadding(QMargins(4, 3, 4, 3));

    connect(&theme_, &Theme::changed, this, &TokenScatter::dress);
    connect(&selection_, &Selection::runsChanged, this, &TokenScatter::dress);
    connect(&selection_, &Selection::hoverChanged, this, &TokenScatter::mark);
    connect(&selection_, &Selection::tokenChanged, this, &TokenScatter::mark);
    connect(&selection_, &Selection::sequenceChanged, this, &TokenScatter::mark);
    connect(&selection_, &Selection::attributionChanged, this, &TokenScatter::mark);
    dress();
}

void TokenScatter::setComparison(std::shared_ptr<const RunComparison> comparison, std::vector<RunKey> keys) {
    keys_ = std::move(keys);
    comparison_ = comparison && comparison->runs.size() > 1 ? std::move(comparison) : nullptr;
    QVector<double> x;
    QVector<double> y;
    high_ = 1;
    stride_ = 1;
    if (comparison_) {
        const std::vector<float>& a = comparison_->runs[0].token_nll;
        const std::vector<float>& b = comparison_->runs[1].token_nll;
        stride_ = a.size() / most_points + 1;
        float largest = 1;
        for (std::size_t i = 0; i < a.size(); ++i) {
            largest = std::max({largest, a[i], b[i]});
            if (i % stride_ == 0) {
                x.append(a[i]);
                y.append(b[i]);
            }
        }
        high_ = largest * 1.04;
    }
    points_->setData(x, y);
    plot_->setVisible(comparison_ != nullptr);
    hint_->setVisible(comparison_ == nullptr);
    buildGrid();
    dress();
    showAll();
}

void TokenScatter::buildGrid() {
    grid_.assign(static_cast<std::size_t>(squares) * squares, {});
    if (!comparison_) {
        return;
    }
    const std::vector<float>& a = comparison_->runs[0].token_nll;
    const std::vector<float>& b = comparison_->runs[1].token_nll;
    for (std::size_t i = 0; i < a.size(); i += stride_) {
        const auto square = [&](float value) {
            return std::clamp(static_cast<int>(value / high_ * squares), 0, squares - 1);
        };
        grid_[static_cast<std::size_t>(square(b[i])) * squares + static_cast<std::size_t>(square(a[i]))]
            .push_back(static_cast<std::uint32_t>(i));
    }
}

qint64 TokenScatter::pointAt(QPointF position, double reach) const {
    if (!comparison_ || !plot_->axisRect()->rect().contains(position.toPoint())) {
        return -1;
    }
    const auto square = [&](double value) {
        return std::clamp(static_cast<int>(value / high_ * squares), 0, squares - 1);
    };
    const int left = square(plot_->xAxis->pixelToCoord(position.x() - reach));
    const int right = square(plot_->xAxis->pixelToCoord(position.x() + reach));
    const int bottom = square(plot_->yAxis->pixelToCoord(position.y() + reach));
    const int top = square(plot_->yAxis->pixelToCoord(position.y() - reach));
    qint64 nearest = -1;
    double least = reach * reach;
    for (int row = bottom; row <= top; ++row) {
        for (int column = left; column <= right; ++column) {
            for (const std::uint32_t i :
                 grid_[static_cast<std::size_t>(row) * squares + static_cast<std::size_t>(column)]) {
                const QPointF away = positionOf(i) - position;
                const double distance = QPointF::dotProduct(away, away);
                if (distance < least) {
                    least = distance;
                    nearest = i;
                }
            }
        }
    }
    return nearest;
}

QPointF TokenScatter::positionOf(std::size_t index) const {
    return {plot_->xAxis->coordToPixel(comparison_->runs[0].token_nll[index]),
            plot_->yAxis->coordToPixel(comparison_->runs[1].token_nll[index])};
}

qint64 TokenScatter::indexOf(qint64 row) const {
    if (!comparison_ || row < 0) {
        return -1;
    }
    const RunComparison::Place place{static_cast<std::int32_t>(selection_.sequence()),
                                     static_cast<std::int32_t>(row)};
    const auto found = std::lower_bound(comparison_->places.begin(), comparison_->places.end(), place);
    return found != comparison_->places.end() && *found == place ? found - comparison_->places.begin() : -1;
}

void TokenScatter::mark() {
    const auto set = [&](QCPGraph* graph, qint64 token) {
        const qint64 index = token < 0 ? -1 : indexOf(selection_.rowOf(token));
        QVector<double> x;
        QVector<double> y;
        if (index >= 0) {
            x.append(comparison_->runs[0].token_nll[static_cast<std::size_t>(index)]);
            y.append(comparison_->runs[1].token_nll[static_cast<std::size_t>(index)]);
        }
        graph->setData(x, y);
    };
    set(hovered_, selection_.hover());
    set(selected_, selection_.token());
    plot_->layer(QStringLiteral("marks"))->replot();
}

void TokenScatter::showAll() {
    plot_->xAxis->setRange(0, high_);
    plot_->yAxis->setRange(0, high_);
    diagonal_->end->setCoords(high_ * 100, high_ * 100);
    mark();
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

void TokenScatter::dress() {
    const Palette& colours = theme_.colours();
    plot_->setBackground(QBrush(colours.panel));
    QColor ink = colours.text;
    ink.setAlphaF(points_->dataCount() > 5000 ? 0.12F : points_->dataCount() > 800 ? 0.25F : 0.45F);
    points_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, ink, 4));
    hovered_->setScatterStyle(
        QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(colours.text, 1.5), QBrush(colours.panel), 10));
    selected_->setScatterStyle(
        QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(colours.a, 2.5), QBrush(colours.panel), 11));
    diagonal_->setPen(QPen(colours.soft, 1, Qt::DashLine));
    const auto run = [&](std::size_t i) {
        return comparison_ ? QString::fromStdString(comparison_->runs[i].label)
                           : QString(i == 0 ? u'A' : u'B');
    };
    std::size_t side = 0;
    for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
        axis->setBasePen(QPen(colours.soft));
        axis->setTickPen(QPen(colours.soft));
        axis->setSubTickPen(Qt::NoPen);
        axis->setTickLengthIn(0);
        axis->setTickLengthOut(3);
        axis->setTickLabelFont(theme_.small());
        axis->setTickLabelColor(colours.soft);
        axis->setLabelFont(theme_.small());
        axis->setLabelColor(side < keys_.size() ? theme_.runColour(keys_[side], selection_) : colours.soft);
        // A label is centred on its axis, and below the y axis the x axis has its numbers.
        constexpr int below = 56;
        const int room = axis == plot_->yAxis ? plot_->height() - below : plot_->width() - 16;
        axis->setLabel(QFontMetrics(theme_.small())
                           .elidedText(tr("NLL of %1, nats").arg(run(side)), Qt::ElideMiddle, room));
        // What is drawn stands out from the grid behind it, in high contrast too.
        axis->grid()->setPen(
            QPen(theme_.appearance() == Appearance::contrast ? colours.faint : colours.line));
        axis->grid()->setZeroLinePen(Qt::NoPen);
        ++side;
    }
    facts_->setFont(theme_.small());
    facts_->setColor(colours.text);
    QColor paper = colours.panel;
    paper.setAlphaF(0.85F);
    facts_->setBrush(paper);
    facts_->setVisible(comparison_ != nullptr);
    if (comparison_) {
        const Estimate& r = comparison_->runs[1].correlation;
        QString text = tr("r = %1").arg(format_nats(r.value, 3));
        if (!std::isnan(r.low)) {
            text += tr(" [%1, %2]").arg(format_nats(r.low, 3), format_nats(r.high, 3));
        }
        text += tr("\n%1 tokens").arg(format_count(static_cast<std::int64_t>(comparison_->places.size())));
        if (stride_ > 1) {
            text += tr(", one of %1 drawn").arg(stride_);
        }
        facts_->setText(text);
    }
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

bool TokenScatter::eventFilter(QObject* watched, QEvent* event) {
    if (watched != plot_ || !comparison_) {
        return QWidget::eventFilter(watched, event);
    }
    switch (event->type()) {
    case QEvent::Resize:
        dress(); // names of axes fit what there is
        break;
    case QEvent::MouseButtonPress:
        pressed_ = static_cast<QMouseEvent*>(event)->position();
        break;
    case QEvent::MouseMove: {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        if (mouse->buttons() == Qt::NoButton) {
            const qint64 index = pointAt(mouse->position());
            const RunComparison::Place place = index < 0
                                                   ? RunComparison::Place{-1, -1}
                                                   : comparison_->places[static_cast<std::size_t>(index)];
            // Tokens of other sequences cannot be shown without leaving this one; a click does that.
            selection_.setHover(
                index >= 0 && place.sequence == selection_.sequence() ? selection_.tokenOf(place.row) : -1);
            plot_->setCursor(index >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
        }
        break;
    }
    case QEvent::MouseButtonRelease: {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        const qint64 index = pointAt(mouse->position());
        if (mouse->button() == Qt::LeftButton && index >= 0 &&
            (mouse->position() - pressed_).manhattanLength() < 4) {
            const RunComparison::Place place = comparison_->places[static_cast<std::size_t>(index)];
            selection_.setSequence(place.sequence);
            selection_.setToken(selection_.tokenOf(place.row));
        }
        break;
    }
    case QEvent::MouseButtonDblClick:
        showAll();
        return true;
    case QEvent::Leave:
        selection_.setHover(-1);
        break;
    default:
        break;
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace ponderscope
