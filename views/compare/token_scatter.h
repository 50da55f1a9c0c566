// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/run_comparison.h"
#include "views/chart/chart_plot.h"
#include "views/common/view_context.h"

#include <memory>

namespace ponderscope {

/// Token against token: the NLL of the first two runs of a comparison. The token under the cursor and the
/// selected token have rings; hovering and clicking a point drive the shared selection.
class TokenScatter : public ChartPlot {
    Q_OBJECT
public:
    explicit TokenScatter(ViewContext context, QWidget* parent = nullptr);

    /// Shows a hint if it is null or has fewer than two runs.
    void setComparison(std::shared_ptr<const RunComparison> comparison);
    /// 1: every token is drawn; n: every n-th.
    [[nodiscard]] std::size_t stride() const { return stride_; }
    /// Mark of a token of the comparison; invalid: it is not drawn.
    [[nodiscard]] Mark markOf(std::size_t place) const;

private:
    void showRings();
    [[nodiscard]] const RunComparison::Place* placeOf(int series, int index) const;

    Selection& selection_;
    std::shared_ptr<const RunComparison> comparison_;
    std::size_t stride_ = 1;
};

} // namespace ponderscope
