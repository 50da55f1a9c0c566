// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/run_comparison.h"
#include "views/common/live_view.h"
#include "views/common/task.h"
#include "views/common/token_subset.h"

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

/// The Compare panel: every open run over the text of run A as a row with its NLL, interval and paired
/// difference. Beside the table are figures of A and B (token against token, or which run predicts which
/// tokens better), or the answers to tasks. Computes on its own thread and can be cancelled. Starts by itself
/// when A, B or the open traces change. Needs only per-token numbers.
class CompareView : public QWidget, public LiveView {
    Q_OBJECT
public:
    explicit CompareView(ViewContext context, QWidget* parent = nullptr);
    ~CompareView() override;
    [[nodiscard]] ViewCommand viewCommand() const override;

    [[nodiscard]] DataTableModel* model() const { return model_; }
    [[nodiscard]] RunKey key(int row) const;                        ///< key of the row's run
    [[nodiscard]] QComboBox* detail() const { return detail_; }     ///< chooses the detail beside the table
    [[nodiscard]] FigurePanel* pairs() const { return pairs_; }     ///< figure "token against token"
    [[nodiscard]] FigurePanel* winners() const { return winners_; } ///< figure of winners
    [[nodiscard]] TaskAnswers* tasks() const { return tasks_; }
    [[nodiscard]] bool isBusy() const override;
    /// The shown comparison; null before the first comparison has ended.
    [[nodiscard]] std::shared_ptr<const RunComparison> comparison() const { return shown_; }
    [[nodiscard]] SubsetChip* chip() const { return chip_; }
    /// Restricts the table to \p subset (empty: no restriction), until another text is compared. The figures
    /// always show all tokens.
    void setSubset(const TokenSubset& subset);

public Q_SLOTS:
    void cancel();

Q_SIGNALS:
    void busyChanged(bool busy);

private:
    /// The request for the comparison, and its runs in the same order. A partial run takes part only as A or
    /// B, because the comparison covers only tokens that all runs scored.
    [[nodiscard]] std::pair<ComparisonRequest, std::vector<RunKey>> request() const;
    void screenChanged() override;
    void renew() override; ///< restarts the comparison if its inputs have changed
    void begin();
    void clear(const QString& why);
    void setCurrent(bool current); ///< false: dims the result, because other runs are chosen now
    void setBusy(bool busy);
    void showDetail();
    void showComparison(); ///< shows the comparison of all tokens, or of the subset
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
    Task choosing_; ///< selects the subset's tokens from all tokens
    QLabel* message_;
    QProgressBar* progress_;
    QPushButton* cancel_;
    QTimer pending_;
    Task job_;
    bool cancelled_ = false; ///< the user cancelled, and has not chosen other runs since
    bool again_ = false;     ///< the runs grew during the computation
    std::shared_ptr<const RunComparison> shown_;
    std::shared_ptr<const RunComparison> all_; ///< the comparison of all tokens; shown_ may cover a subset
    std::vector<RunKey> keys_;                 ///< keys of the shown runs
    SubsetChip* chip_;
    TokenSubset subset_;
    std::vector<RunKey> wanted_; ///< runs of the running or shown comparison
    QString stamp_;              ///< stamps of the contents of these runs
};

} // namespace ponderscope
