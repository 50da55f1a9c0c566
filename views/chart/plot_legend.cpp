// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/chart/plot_legend.h"

#include "views/chart/chart_axis.h"
#include "views/chart/scale_bar.h"
#include "views/common/controls.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int sample_width = 22;
constexpr int entry_gap = 6;
constexpr double line_width = 1.6;

/// A series in the legend; checked while the series is shown.
class LegendEntry : public QAbstractButton {
public:
    LegendEntry(const Chart::Series& series, const ChartInks& inks, Theme& theme, QWidget* parent)
        : QAbstractButton(parent), theme_(theme), mark_(series.mark), strong_(series.strong) {
        colour_ = ink_of(inks, series.ink);
        round_ = round_of(inks, series.ink);
        for (const double length : dashes_of(inks, series)) {
            dashes_ << length / line_width;
        }
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
        const QColor ink = isChecked() ? colour_ : colours.faint;
        const QPointF middle(sample_width / 2.0, height() / 2.0);
        if (mark_ == Chart::Mark::line) {
            QPen pen(ink, line_width);
            if (!dashes_.isEmpty()) {
                pen.setDashPattern(dashes_);
            }
            painter.setPen(pen);
            painter.drawLine(QPointF(0, middle.y()), QPointF(sample_width, middle.y()));
        } else if (mark_ == Chart::Mark::point) {
            const bool hollow = strong_ || round_ > 0;
            painter.setPen(QPen(ink, hollow ? 1.5 : 0));
            painter.setBrush(hollow ? colours.panel : ink);
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
    bool strong_;
    QColor colour_;
    int round_ = 0;
    QList<qreal> dashes_;
};

} // namespace

PlotLegend::PlotLegend(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    auto* flow = new FlowLayout(this);
    flow->setContentsMargins(0, 0, 0, 0);
    flow->setSpacing(8);
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
        layout()->addWidget(entry);
    }
    if (chart.scale) {
        const Chart::Scale& scale = *chart.scale;
        const bool sign = scale.diverging && scale.low == -scale.high;
        scale_ = new ScaleBar(theme_, this);
        scale_->setScale(scale.label, tick_label(scale.low),
                         (sign ? u"+"_s : QString()) + tick_label(scale.high), scale.diverging);
        layout()->addWidget(scale_);
    }
    setVisible(!entries_.empty() || scale_ != nullptr);
}

bool PlotLegend::arrange(const Chart& chart, QSize box) {
    constexpr int most_rows_above = 2;
    int widest = 0;
    int x = 0;
    int rows = 1;
    for (QAbstractButton* entry : entries_) {
        const int width = entry->sizeHint().width();
        widest = std::max(widest, width);
        if (x > 0 && x + width > box.width()) {
            x = 0;
            ++rows;
        }
        x += width + layout()->spacing();
    }
    const int column = widest + layout()->spacing();
    const bool beside = entries_.size() > 1 && column < box.width() / 2 &&
                        (chart.legend == Chart::Legend::right ||
                         (chart.legend == Chart::Legend::automatic && rows > most_rows_above));
    for (QAbstractButton* entry : entries_) {
        entry->setFixedWidth(beside ? widest
                                    : std::min(entry->sizeHint().width(), std::max(40, box.width())));
    }
    if (!beside) {
        setMinimumWidth(0);
        setMaximumWidth(QWIDGETSIZE_MAX);
        return false;
    }
    // In as few columns as the height allows and as many as half of the width does. More rows than these
    // would make a panel that is low scroll.
    constexpr int most_rows_beside = 8;
    const int line = entries_.front()->sizeHint().height() + layout()->spacing();
    const int fit = std::clamp(box.height() / line, 1, most_rows_beside);
    const int wanted = (static_cast<int>(entries_.size()) + fit - 1) / fit;
    const int columns = std::clamp(wanted, 1, std::max(1, box.width() / 2 / column));
    setFixedWidth(columns * column);
    return true;
}

} // namespace ponderscope
