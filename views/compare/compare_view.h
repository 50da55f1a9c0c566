// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/run_comparison.h"
#include "views/common/live_view.h"
#include "views/common/task.h"
#include "views/common/token_subset.h"
#include "views/common/view_command.h"
#include "views/common/view_context.h"

#include <QTimer>
#include <QWidget>

#include <memory>
#include <utility>
#include <vector>

class QComboBox;
class QLabel;
class QProgressBar;
class QPushButton;
class QStackedWidget;
class QTableView;

namespace ponderscope {

class DataTableModel;
class FigurePanel;
class SubsetChip;
class TaskAnswers;

/// The compare tab: every open run over the text of run A as a row with its NLL, interval and paired
/// difference; beside it figures of A and B, token against token or who wins where, or the answers to tasks.
/// Computes on a thread of its own, starts by itself when A, B or the open traces change, can be cancelled.
/// Needs nothing but per-token scalars.
class CompareView : public QWidget, public LiveView, public ShowsCommand {
    Q_OBJECT
public:
    explicit CompareView(ViewContext context, QWidget* parent = nullptr);
    ~CompareView() override;
    [[nodiscard]] ViewCommand viewCommand() const override;

    [[nodiscard]] DataTableModel* model() const { return model_; }
    [[nodiscard]] RunKey key(int row) const;                        ///< of the model
    [[nodiscard]] QComboBox* detail() const { return detail_; }     ///< chooses the detail beside the table
    [[nodiscard]] FigurePanel* pairs() const { return pairs_; }     ///< token against token
    [[nodiscard]] FigurePanel* winners() const { return winners_; } ///< who wins where
    [[nodiscard]] TaskAnswers* tasks() const { return tasks_; }
    [[nodiscard]] bool isBusy() const override;
    /// The comparison that is shown; null before the first has ended.
    [[nodiscard]] std::shared_ptr<const RunComparison> comparison() const { return shown_; }
    [[nodiscard]] SubsetChip* chip() const { return chip_; }
    /// The table compares over these tokens alone, until it is given none or another text is compared. The
    /// figures beside it are of all tokens.
    void setSubset(const TokenSubset& subset);

public Q_SLOTS:
    void cancel();

Q_SIGNALS:
    void busyChanged(bool busy);

private:
    /// The request for the comparison, and its runs in the same order. Runs that were cut off or are being
    /// recorded take part only as A or B, because the comparison covers only tokens that all runs scored.
    [[nodiscard]] std::pair<ComparisonRequest, std::vector<RunKey>> request() const;
    void screenChanged() override;
    void renew() override; ///< starts again if what is to be compared has changed
    void begin();
    void clear(const QString& why);
    void setCurrent(bool current); ///< false: dims a result that is not of the chosen runs
    void finished(std::shared_ptr<const RunComparison> comparison);
    void setBusy(bool busy);
    void showDetail();
    void showComparison(); ///< of all, or of the subset
    [[nodiscard]] QString tip(int row, int column) const;
    void present(const std::shared_ptr<const RunComparison>& comparison);

    TraceData& data_;
    Selection& selection_;
    Theme& theme_;
    DataTableModel* model_;
    QTableView* table_;
    FigurePanel* pairs_;
    FigurePanel* winners_;
    QComboBox* detail_;
    TaskAnswers* tasks_;
    QStackedWidget* beside_;
    Task choosing_; ///< of the subset's tokens among all
    QLabel* message_;
    QProgressBar* progress_;
    QPushButton* cancel_;
    QTimer pending_;
    Task job_;
    bool cancelled_ = false; ///< by the user, who has not chosen other runs since
    bool again_ = false;     ///< its runs grew while it computed
    std::shared_ptr<const RunComparison> shown_;
    std::shared_ptr<const RunComparison> all_; ///< of which shown_ may be a part
    std::vector<RunKey> keys_;                 ///< of its runs
    SubsetChip* chip_;
    TokenSubset subset_;
    std::vector<RunKey> wanted_; ///< runs of the running or shown comparison
    QString stamp_;              ///< and what these held
};

} // namespace ponderscope
