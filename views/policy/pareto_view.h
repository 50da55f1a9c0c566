// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/common/view_command.h"
#include "views/common/view_context.h"

#include <QWidget>

class QAction;
class QComboBox;

namespace ponderscope {

namespace figure {
struct FigureSpec;
}

class ChartView;
class PolicyData;
struct FrontLook;

/// Perplexity against compute: the fronts of all policies by replay with their bands, and the runs over the
/// same text as they were recorded. Hover names the point and what it cost, a click chooses its policy for
/// the lab.
class ParetoView : public QWidget, public LiveView, public ShowsCommand {
    Q_OBJECT
public:
    explicit ParetoView(ViewContext context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;
    [[nodiscard]] bool isBusy() const override;
    [[nodiscard]] ChartView* chart() const { return chart_; }
    [[nodiscard]] QComboBox* cost() const { return cost_; }

private:
    void renew() override;
    void askForLimits();

    ViewContext context_;
    PolicyData& shared_;
    QComboBox* cost_;
    QAction* bands_;
    QAction* logCost_;
    QAction* logPerplexity_;
    ChartView* chart_;
};

/// The figure of fronts that look so.
void fill_front(figure::FigureSpec& spec, const FrontLook& look);

} // namespace ponderscope
