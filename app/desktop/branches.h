// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/recorded_choices.h"
#include "views/common/view_context.h"

#include <QLabel>
#include <QTreeWidget>
#include <QWidget>

#include <vector>

class QPushButton;
class QTreeWidgetItem;

namespace ponderscope {

/// A run in a tree of generations.
struct BranchNode {
    RunKey run;
    int parent = -1; ///< index of the run that this run continues; -1: the root
    std::optional<Branch> branch;
};

/// The tree of \p run, parents before children. Contains at least \p run, if open. A run in several open
/// traces is listed once, preferably from the trace of \p run.
std::vector<BranchNode> branch_tree(const TraceData& data, const RunKey& run);

/// A possible token at a position.
struct BranchCandidate {
    int id = 0;
    double before = 0; ///< probability in the model's distribution
    double after = 0;  ///< after temperature, top-k and top-p; NaN: no token was sampled at this position
};

/// The recorded candidates for the token after \p row of run A: from sampling, else from the last step's
/// read-out. Empty: not recorded, or still being read.
std::vector<BranchCandidate> branch_candidates(TraceData& data, const Selection& selection, qint64 row);

/// The candidates of the selected token, and the tree of branches of run A. A click on a candidate continues
/// the run from this token. A click in the tree shows a run as A. Ctrl+click or the key B shows a run as B.
class Branches : public QWidget {
    Q_OBJECT
public:
    explicit Branches(const ViewContext& context, QWidget* parent = nullptr);
    void refresh();
    void refreshCandidates();
    void setRunning(bool running);
    [[nodiscard]] QTreeWidget& candidates() { return *candidates_; }
    [[nodiscard]] QTreeWidget& tree() { return *tree_; }

Q_SIGNALS:
    /// The user wants to continue run A with the token \p id at position \p at.
    void branchRequested(qint64 at, int id);
    void saveRequested(const std::vector<ponderscope::RunKey>& runs);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void showTree();
    void force(const QTreeWidgetItem* item);
    void choose(const QTreeWidgetItem* item, bool asB);

    ViewContext context_;
    QLabel* about_ = new QLabel(this);
    QTreeWidget* candidates_ = new QTreeWidget(this);
    QTreeWidget* tree_ = new QTreeWidget(this);
    QPushButton* save_;
    qint64 at_ = -1; ///< position of the candidates
    std::vector<BranchNode> nodes_;
    bool running_ = false;
};

} // namespace ponderscope
