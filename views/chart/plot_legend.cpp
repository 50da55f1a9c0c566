// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/chart/plot_legend.h"

#include "views/chart/chart_axis.h"
#include "views/chart/plot_series.h"
#include "views/chart/scale_bar.h"

#include <QMenu>
#include <QPainter>
#include <QToolButton>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int sample_width = 22;
constexpr int entry_gap = 6;

/// The legend entry of a series; checked while the series is shown.
class LegendEntry : public QAbstractButton {
public:
    LegendEntry(const Chart::Series& series, const ChartInks& inks, Theme& theme, QWidget* parent)
        : QAbstractButton(parent),
          theme_(theme),
          mark_(series.mark),
          hollow_(is_hollow(inks, series)),
          pen_(line_pen(inks, series, ink_of(inks, series.ink))) {
        setText(series.name);
        setCheckable(true);
        setFocusPolicy(Qt::TabFocus);
        setCursor(Qt::PointingHandCursor);
        setToolTip(u"Hide or show this series"_s);
    }
    [[nodiscard]] QSize sizeHint() const override {
        const QFontMetrics metrics(theme_.small());
        return {sample_width + entry_gap + metrics.horizontalAdvance(text()) + 4, metrics.height() + 3};
    }

protected:
    void paintEvent(QPaintEvent*) override {
        const Palette& colours = theme_.colours();
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        QPen pen = pen_;
        if (!isChecked()) {
            pen.setColor(colours.faint);
        }
        const QColor ink = pen.color();
        const QPointF middle(sample_width / 2.0, height() / 2.0);
        if (mark_ == Chart::Mark::line) {
            painter.setPen(pen);
            painter.drawLine(QPointF(0, middle.y()), QPointF(sample_width, middle.y()));
        } else if (mark_ == Chart::Mark::point) {
            painter.setPen(QPen(ink, hollow_ ? 1.5 : 0));
            painter.setBrush(hollow_ ? colours.panel : ink);
            painter.drawEllipse(middle, 3.5, 3.5);
        } else {
            QColor fill = ink;
            fill.setAlphaF(mark_ == Chart::Mark::band ? 0.25F : 1);
            painter.fillRect(QRectF(middle.x() - 5, middle.y() - 4, 10, 8), fill);
        }
        QFont font = theme_.small();
        font.setStrikeOut(!isChecked());
        painter.setFont(font);
        painter.setPen(isChecked() ? colours.soft : colours.faint);
        const QRect room = rect().adjusted(sample_width + entry_gap, 0, 0, 0);
        painter.drawText(room, Qt::AlignVCenter | Qt::AlignLeft,
                         QFontMetrics(font).elidedText(text(), Qt::ElideRight, room.width()));
        if (hasFocus() || underMouse()) {
            painter.setRenderHint(QPainter::Antialiasing, false);
            painter.setPen(hasFocus() ? colours.a : colours.border);
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(rect().adjusted(0, 0, -1, -1));
        }
    }
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    Theme& theme_;
    Chart::Mark mark_;
    bool hollow_;
    QPen pen_;
};

} // namespace

PlotLegend::PlotLegend(Theme& theme, QWidget* parent)
    : QWidget(parent), theme_(theme), further_(new QToolButton(this)) {
    further_->setPopupMode(QToolButton::InstantPopup);
    further_->setAutoRaise(true);
    further_->setToolTip(u"The other series"_s);
    further_->setAccessibleName(u"The other series"_s);
    auto* menu = new QMenu(further_);
    further_->setMenu(menu);
    connect(menu, &QMenu::aboutToShow, this, &PlotLegend::listFurther);
}

void PlotLegend::listFurther() {
    QMenu* menu = further_->menu();
    menu->clear();
    for (QAbstractButton* entry : entries_) {
        if (entry->isHidden()) {
            QAction* action = menu->addAction(QString(entry->text()).replace(u'&', u"&&"_s));
            action->setCheckable(true);
            action->setChecked(entry->isChecked());
            connect(action, &QAction::toggled, entry, &QAbstractButton::setChecked);
        }
    }
}

void PlotLegend::setChart(const Chart& chart, const ChartInks& inks, const QStringList& hidden) {
    for (QAbstractButton* entry : entries_) {
        delete entry;
    }
    entries_.clear();
    delete scale_;
    scale_ = nullptr;
    for (const Chart::Series& series : chart.series) {
        if (series.name.isEmpty() || !series.listed || chart.legend == Chart::Legend::none) {
            continue;
        }
        auto* entry = new LegendEntry(series, inks, theme_, this);
        entry->setChecked(!hidden.contains(series.name));
        connect(entry, &QAbstractButton::toggled, this,
                [this, name = series.name](bool shown) { Q_EMIT toggled(name, shown); });
        entries_.push_back(entry);
    }
    if (chart.scale) {
        const Chart::Scale& scale = *chart.scale;
        const bool sign = scale.diverging && scale.low == -scale.high;
        scale_ = new ScaleBar(theme_, this);
        scale_->setScale(scale.label, tick_label(scale.low),
                         (sign ? u"+"_s : QString()) + tick_label(scale.high), scale.diverging);
    }
}

int PlotLegend::widthBeside(const Chart& chart, int width, int row) const {
    constexpr double most_of_width = 0.3;
    int all = 0;
    int widest = 0;
    for (const QAbstractButton* entry : entries_) {
        all += entry->sizeHint().width() + entry_gap;
        widest = std::max(widest, entry->sizeHint().width());
    }
    const bool wanted = chart.legend == Chart::Legend::right ||
                        (chart.legend == Chart::Legend::automatic && all - entry_gap > row);
    return wanted && scale_ == nullptr && entries_.size() > 1 && widest + entry_gap <= most_of_width * width
               ? widest + entry_gap
               : 0;
}

void PlotLegend::arrange(const QRect& room, bool beside) {
    setGeometry(room);
    QPoint at(beside ? entry_gap : 0, 0);
    if (scale_ != nullptr) {
        scale_->setGeometry(QRect(at, scale_->sizeHint().boundedTo(room.size())));
        scale_->show();
        at.rx() += scale_->width() + 2 * entry_gap;
    }
    const int gap = beside ? 0 : entry_gap;
    int length = -gap; // of all entries together
    for (const QAbstractButton* entry : entries_) {
        length += gap + (beside ? entry->sizeHint().height() : entry->sizeHint().width());
    }
    further_->setFont(theme_.small());
    further_->setText(u"%1 more"_s.arg(entries_.size()));
    const QSize last = further_->sizeHint().boundedTo(room.size());
    const bool all = length <= (beside ? room.height() : room.width() - at.x());
    const int right = room.width() - (all || beside ? 0 : last.width() + gap);
    const int bottom = room.height() - (all || !beside ? 0 : last.height());
    std::size_t left = entries_.size();
    bool full = false;
    for (QAbstractButton* entry : entries_) {
        QSize size = entry->sizeHint();
        if (beside || left == entries_.size()) { // the first entry of a row is always shown
            size.setWidth(std::clamp(size.width(), 0, std::max(0, right - at.x())));
        }
        full = full || at.x() + size.width() > right || at.y() + size.height() > bottom;
        entry->setVisible(!full);
        if (!full) {
            entry->setFixedSize(size);
            entry->move(at);
            at += beside ? QPoint(0, size.height()) : QPoint(size.width() + gap, 0);
            --left;
        }
    }
    further_->setVisible(left > 0);
    further_->setText(u"%1 more"_s.arg(left));
    further_->setGeometry(QRect(at, last));
}

} // namespace ponderscope
