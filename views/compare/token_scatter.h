// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/run_comparison.h"
#include "views/common/view_context.h"

#include <QWidget>

#include <memory>
#include <vector>

class QCPGraph;
class QCPItemLine;
class QCPItemText;
class QCustomPlot;
class QLabel;

namespace ponderscope {

/// Token against token: the NLL of the first two runs of a comparison. The point under the cursor and the
/// selected token are marked; hovering and clicking a point drive the shared selection. The wheel zooms,
/// dragging pans, a double click shows all.
class TokenScatter : public QWidget {
    Q_OBJECT
public:
    explicit TokenScatter(ViewContext context, QWidget* parent = nullptr);

    /// Null, or fewer than two runs: empty.
    /// \p keys: of the comparison's runs, in their order; axes wear their colours.
    void setComparison(std::shared_ptr<const RunComparison> comparison, std::vector<RunKey> keys = {});
    /// Index of the nearest drawn token within \p reach pixels, -1 when there is none.
    [[nodiscard]] qint64 pointAt(QPointF position, double reach = 8) const;
    /// Where a token of the comparison is drawn, in this widget's coordinates.
    [[nodiscard]] QPointF positionOf(std::size_t index) const;
    /// 1: every token is drawn; n: every n-th.
    [[nodiscard]] std::size_t stride() const { return stride_; }
    [[nodiscard]] QCustomPlot* plot() const { return plot_; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void dress(); ///< colours and fonts of the theme
    void mark();  ///< the hovered and the selected token
    void showAll();
    void buildGrid();
    [[nodiscard]] qint64 indexOf(qint64 row) const; ///< of the selected sequence; -1 when it was not compared

    Selection& selection_;
    Theme& theme_;
    std::shared_ptr<const RunComparison> comparison_;
    std::vector<RunKey> keys_;
    QCustomPlot* plot_;
    QLabel* hint_ = nullptr; ///< in the place of the plot while there is nothing to compare
    QCPGraph* points_;
    QCPGraph* hovered_;
    QCPGraph* selected_;
    QCPItemLine* diagonal_;
    QCPItemText* facts_;
    std::size_t stride_ = 1;
    double high_ = 1;
    QPointF pressed_;
    // Points by square of the plane, so that the nearest one is found without looking at all of them.
    static constexpr int squares = 96;
    std::vector<std::vector<std::uint32_t>> grid_;
};

} // namespace ponderscope
