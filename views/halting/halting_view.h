// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/common/task.h"
#include "views/common/token_subset.h"
#include "views/common/view_command.h"
#include "views/common/view_context.h"
#include "views/halting/halting_charts.h"

#include <QWidget>

#include <array>
#include <memory>

class QComboBox;
class QLabel;
class QLineEdit;
class QSortFilterProxyModel;
class QTableView;

namespace ponderscope {

class ChartPlot;
class SubsetChip;
class DataTableModel;

/// When the tokens of run A stop: steps, NLL and entropy by halt step, gates by step, and a table of token
/// types that finds them in the text. Reads the whole run in the background, while it can be seen.
class HaltingView : public QWidget, public LiveView, public ShowsCommand {
    Q_OBJECT
public:
    explicit HaltingView(ViewContext context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;

    [[nodiscard]] bool isBusy() const override { return work_.isBusy(); }
    [[nodiscard]] std::shared_ptr<const HaltingStats> stats() const { return stats_; }
    [[nodiscard]] ChartPlot* chart(HaltingChart kind) const {
        return charts_[static_cast<std::size_t>(kind)];
    }
    [[nodiscard]] DataTableModel* types() const { return model_; }
    [[nodiscard]] QTableView* table() const { return table_; }
    [[nodiscard]] QLineEdit* filter() const { return filter_; }
    [[nodiscard]] QString hint() const;
    [[nodiscard]] SubsetChip* chip() const { return chip_; }
    /// Counts these tokens alone, until it is given none or another text is looked at.
    void setSubset(const TokenSubset& subset);

Q_SIGNALS:
    void tokenTypeChosen(int id); ///< a row was clicked: its places in the text are wanted

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void renew() override;
    void showStats();
    void arrange();

    ViewContext context_;
    Task work_;
    QString asked_; ///< what the statistics are of
    std::shared_ptr<const HaltingStats> stats_;
    QLabel* hint_;
    QWidget* body_;
    std::array<ChartPlot*, all_halting_charts.size()> charts_{};
    QComboBox* chooser_; ///< of the second chart, where there is no room for all
    QLineEdit* filter_;
    SubsetChip* chip_;
    TokenSubset subset_;
    DataTableModel* model_;
    QSortFilterProxyModel* sorted_;
    QTableView* table_;
};

} // namespace ponderscope
