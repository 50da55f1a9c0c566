// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart_plot.h"
#include "views/common/live_view.h"
#include "views/common/task.h"
#include "views/figure/figure.h"
#include "views/figure/spec.h"

#include <QHash>
#include <QTimer>
#include <QWidget>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

class QHBoxLayout;
class QLabel;
class QScrollArea;

namespace ponderscope {

class FigureForm;

namespace figure {
class FigurePreview;
}

/// The figure of a specification in a panel, for the shown runs. It is computed in the background while the
/// panel is visible. A form edits the specification's keys. Charts are interactive plots, the kind `panels`
/// is a row of charts, other kinds are shown as a page. A click on a token's mark selects the token; the
/// selected token's mark has a ring. The command and the exported figure use the same specification.
class FigurePanel : public QWidget, public LiveView {
    Q_OBJECT
public:
    /// \p spec: kind and keys. The window sets the runs.
    FigurePanel(ViewContext context, figure::FigureSpec spec, QWidget* parent = nullptr);
    ~FigurePanel() override;

    /// A panel whose height policy is Ignored can be as low as needed.
    [[nodiscard]] bool hasHeightForWidth() const override {
        return sizePolicy().verticalPolicy() != QSizePolicy::Ignored && QWidget::hasHeightForWidth();
    }
    [[nodiscard]] ViewCommand viewCommand() const override;
    [[nodiscard]] bool isBusy() const override { return work_.isBusy(); }
    /// The specification, including the window's runs.
    [[nodiscard]] figure::FigureSpec spec() const;
    /// The plot of the figure, or of one chart on the page.
    [[nodiscard]] ChartPlot* chart(std::size_t place = 0) const { return cells_[place].plot; }
    /// Form of the figure's keys, or of the keys that all charts of the page share.
    [[nodiscard]] FigureForm* form() const { return form_; }
    /// The form above one chart, with the keys that choose the chart's content.
    [[nodiscard]] FigureForm* ownForm(std::size_t place) const { return cells_[place].form; }
    [[nodiscard]] QString hint() const;
    /// Stops reading, as for a hidden panel. The next setOnScreen(true) starts reading again.
    void cancel();
    /// Replaces the keys; the kind must stay the same.
    void setSpec(figure::FigureSpec spec);
    /// Calls \p change for the shown charts now, and for each later chart before the panel shows the chart.
    void decorate(std::function<void(Chart&)> change);
    /// Draws only the selected token. Only for kinds that read the key "tokens".
    void followToken();
    /// Hides all but the charts, because the surrounding panel shows the shared keys and notices.
    void embed();

Q_SIGNALS:
    /// The user clicked a mark with this link (Chart::Series::links).
    void linkChosen(const QString& link);

private:
    struct Cell {
        FigureForm* form = nullptr;
        ChartPlot* plot = nullptr;
        Chart chart;                              ///< without decoration; empty: no chart
        QHash<QString, ChartPlot::Mark> tokens{}; ///< marks of tokens by their links
        QHash<QString, ChartPlot::Mark> layers{}; ///< marks of layers and steps
        figure::FigurePreview* page = nullptr;
        std::unique_ptr<figure::Figure> made; ///< the page's figure
    };
    struct Gathered {
        figure::FigureSpec spec;
        figure::FigureData data;
        QString problem; ///< why there is no data
    };
    void renew() override;
    void addCell(QHBoxLayout& row, const figure::FigureSpec& spec);
    void showParts(const std::vector<Gathered>& all);
    void showCell(Cell& cell, const figure::FigureSpec& spec, const figure::FigureData& data);
    void plot(Cell& cell);
    void showTokens(); ///< draws rings around the selected tokens
    void showHint(const QString& sentence);
    static void showProblem(Cell& cell, const QString& sentence);
    /// Why the figure could not be made; empty: the figure is shown.
    [[nodiscard]] static QString problemOf(const Cell& cell);
    void choose(const QString& link);
    [[nodiscard]] std::vector<figure::RunName> runs() const;
    [[nodiscard]] QString stamp(const figure::FigureSpec& wanted) const;

    ViewContext context_;
    figure::FigureSpec spec_;
    Task work_;
    QString asked_;  ///< the specification that is shown or in progress
    QString grown_;  ///< the sizes of the figure's runs when asked_ was set
    QTimer pending_; ///< delay before growing runs are read again
    std::unique_ptr<figure::Fonts> fonts_;
    FigureForm* form_;
    QScrollArea* side_; ///< contains the form
    std::vector<Cell> cells_;
    std::function<void(Chart&)> decorate_;
    bool embedded_ = false;
    bool followsToken_ = false;
    std::vector<std::string> named_; ///< names in the legends of the shown charts
    QWidget* body_;
    QLabel* notices_;
    QLabel* hint_;
};

/// A specification of a kind, with all other keys at their defaults.
figure::FigureSpec figure_of(figure::FigureKind kind);
/// A page of figures side by side.
figure::FigureSpec page_of(std::initializer_list<figure::FigureKind> kinds);
/// Loss, steps and gradient of trainings.
figure::FigureSpec training_page();
/// Fronts of halting policies with bands, from shown_replicates replicates.
figure::FigureSpec front_figure();

} // namespace ponderscope
