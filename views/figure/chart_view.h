// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"
#include "views/figure/chart.h"
#include "views/figure/display_list.h"

#include <QWidget>

#include <memory>

namespace ponderscope {

namespace figure {
class Fonts;
struct Style;
} // namespace figure

/// A chart in the window: drawn as the figure would be, with the label of the mark under the cursor in a
/// tooltip. Clicking a mark tells which.
class ChartView : public QWidget {
    Q_OBJECT
public:
    explicit ChartView(Theme& theme, QWidget* parent = nullptr);
    ~ChartView() override;

    void setChart(figure::Chart chart);
    /// Instead of a chart: what to do to get one.
    void setHint(const QString& hint);
    [[nodiscard]] const figure::Chart& chart() const { return chart_; }
    [[nodiscard]] QString hint() const { return hint_; }
    [[nodiscard]] const figure::ChartPlaces& places();
    /// What is painted, in pixels.
    [[nodiscard]] const figure::DisplayList& drawn();
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

Q_SIGNALS:
    void markHovered(int series, int index); ///< -1, -1: none
    void markClicked(int series, int index);

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void lay();
    void needHeight();
    [[nodiscard]] figure::Style style(const figure::Fonts& fonts) const;

    Theme& theme_;
    figure::Chart chart_;
    QString hint_;
    std::unique_ptr<figure::DisplayList> list_; ///< null: to be laid out
    figure::ChartPlaces places_;
    int leastHeight_ = 100;
    int series_ = -1;
    int index_ = -1;
};

} // namespace ponderscope
