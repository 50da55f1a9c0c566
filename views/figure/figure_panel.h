// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart_plot.h"
#include "views/common/live_view.h"
#include "views/common/task.h"
#include "views/common/view_command.h"
#include "views/common/view_context.h"
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

/// A figure in a panel: the figure of a specification for the shown runs, computed in the background while
/// visible, with a form of the specification's keys. Charts are plots that zoom and answer the cursor; other
/// kinds are the page itself. A page of panels is a row of charts. A mark that stands for a token drives the
/// selection and has a ring where the selection has the token. The command and
/// the exported figure are the specification.
class FigurePanel : public QWidget, public LiveView, public ShowsCommand {
    Q_OBJECT
public:
    /// \p spec: kind and keys; its runs are set by the window.
    FigurePanel(ViewContext context, figure::FigureSpec spec, QWidget* parent = nullptr);
    ~FigurePanel() override;

    [[nodiscard]] ViewCommand viewCommand() const override;
    [[nodiscard]] bool isBusy() const override { return work_.isBusy(); }
    /// The specification, with the runs of the window.
    [[nodiscard]] figure::FigureSpec spec() const;
    /// The plot of the figure, or of one chart of the page.
    [[nodiscard]] ChartPlot* chart(std::size_t place = 0) const { return cells_[place].plot; }
    /// Keys of the figure, or those that all charts of the page share.
    [[nodiscard]] FigureForm* form() const { return form_; }
    /// The form above one chart, of the keys that choose what the chart shows.
    [[nodiscard]] FigureForm* ownForm(std::size_t place) const { return cells_[place].form; }
    [[nodiscard]] QString hint() const;
    /// Ends reading and leaves the screen; back there it begins anew.
    void cancel();
    /// Other keys; of the same kind.
    void setSpec(figure::FigureSpec spec);
    /// Calls \p change with each chart before it is shown, and with those that are shown.
    void decorate(std::function<void(Chart&)> change);
    /// Leaves the room of the shared keys to the charts.
    void hideForm();

Q_SIGNALS:
    /// A mark that stands for something was clicked: Chart::Series::links.
    void linkChosen(const QString& link);

private:
    struct Cell {
        FigureForm* form = nullptr;
        ChartPlot* plot = nullptr;
        Chart chart;                              ///< without decoration; empty: none
        QHash<QString, ChartPlot::Mark> tokens{}; ///< marks of tokens, by their links
        figure::FigurePreview* page = nullptr;
        std::unique_ptr<figure::Figure> made; ///< on the page
    };
    struct Gathered {
        figure::FigureSpec spec;
        figure::FigureData data;
        QString problem; ///< there is no data
    };
    void renew() override;
    void addCell(QHBoxLayout& row, const figure::FigureSpec& spec);
    void showParts(const std::vector<Gathered>& all);
    void showCell(Cell& cell, const figure::FigureSpec& spec, const figure::FigureData& data);
    void plot(Cell& cell);
    void showTokens(); ///< rings around those that the selection has
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
    QString asked_;  ///< the specification that is shown or under way
    QString grown_;  ///< how far its runs were then
    QTimer pending_; ///< until what has grown since is read
    std::unique_ptr<figure::Fonts> fonts_;
    FigureForm* form_;
    QScrollArea* side_; ///< of the form
    std::vector<Cell> cells_;
    std::function<void(Chart&)> decorate_;
    std::vector<std::string> named_; ///< in the legends of the charts that are shown
    QWidget* body_;
    QLabel* notices_;
    QLabel* hint_;
};

/// Figures beside each other.
figure::FigureSpec page_of(std::initializer_list<figure::FigureKind> kinds);
/// Loss, steps and gradient of trainings.
figure::FigureSpec training_page();
/// Fronts of halting policies with bands, for the window.
figure::FigureSpec front_figure();

} // namespace ponderscope
