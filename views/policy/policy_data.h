// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/common/view_context.h"
#include "views/policy/front_chart.h"

#include <QObject>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope {

struct PolicyRerun;
struct ReplayTable;

/// The replay table of run A, read in the background when the policy lab shows it, and the reruns that the
/// open traces hold. One for each window. GUI thread.
class PolicyData : public QObject {
    Q_OBJECT
public:
    /// The window's own; made on first use, goes with its data.
    static PolicyData& of(const ViewContext& context);

    /// A view that needs the table is visible.
    void want();
    [[nodiscard]] bool isBusy() const { return loading_.isBusy(); }
    [[nodiscard]] std::shared_ptr<const ReplayTable> table() const {
        return table_;
    } ///< null: see sentence()
    /// Why there is no table: what to open or to record, or that the table is being read.
    [[nodiscard]] QString sentence() const { return sentence_; }
    /// Rows of a sequence of run A within the table: [first, first + count); nothing: {-1, 0}.
    [[nodiscard]] std::pair<qint64, qint64> rowsOf(qint64 sequence) const;
    [[nodiscard]] RunKey run() const { return run_; } ///< the run of all this data
    /// A run of the open traces that computed this policy on the model and text of run(): its exact rerun.
    [[nodiscard]] RunKey rerunOf(const QString& policy) const;
    /// All open exact reruns of run().
    [[nodiscard]] std::vector<PolicyRerun> storedReruns() const;
    /// The same as points of a front.
    [[nodiscard]] std::vector<RunPoint> rerunPoints() const;
    /// A mark of a front was clicked; links to other things are ignored.
    void chooseLink(const QString& link);

Q_SIGNALS:
    void tableChanged();
    void policyChosen(const QString& policy);
    void rerunsChanged(); ///< a run came or went that a replay can be set against

private:
    PolicyData(const ViewContext& context, QObject* parent);
    void check();
    void load();
    void findReruns();

    TraceData& data_;
    Selection& selection_;
    RunKey run_;
    QString stamp_;       ///< of the run that the table was read from
    bool failed_ = false; ///< this run has no table; sentence_ says why
    QString sentence_;
    std::map<QString, RunKey> reruns_; ///< by policy
    std::shared_ptr<const ReplayTable> table_;
    Task loading_;
};

} // namespace ponderscope
