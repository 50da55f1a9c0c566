// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/common/view_context.h"
#include "views/policy/front_chart.h"

#include <QObject>

#include <map>
#include <memory>
#include <vector>

namespace ponderscope {

struct PolicyRerun;
struct ReplayTable;

/// The replay table of run A, read when a view needs the table, and the reruns in open traces. GUI thread.
class PolicyData : public QObject {
    Q_OBJECT
public:
    /// The window's object, created on first use and destroyed with its data.
    static PolicyData& of(const ViewContext& context);

    /// Reads the table, if needed. Call it when a view that needs the table becomes visible.
    void want();
    [[nodiscard]] bool isBusy() const { return loading_.isBusy(); }
    [[nodiscard]] std::shared_ptr<const ReplayTable> table() const {
        return table_;
    } ///< null: sentence() says why
    /// The reason for a missing table: a file to open, a signal to record, or the running read.
    [[nodiscard]] QString sentence() const { return sentence_; }
    /// Rows of a sequence of run A in the table, [first, count]; {-1, 0}: none.
    [[nodiscard]] std::pair<qint64, qint64> rowsOf(qint64 sequence) const;
    [[nodiscard]] RunKey run() const { return run_; } ///< the run of this data
    /// An exact rerun of run() with this policy in the open traces: the same model and text. Invalid: none.
    [[nodiscard]] RunKey rerunOf(const QString& policy) const;
    /// All exact reruns of run() in the open traces.
    [[nodiscard]] std::vector<PolicyRerun> storedReruns() const;
    /// The reruns as points of a front.
    [[nodiscard]] std::vector<RunPoint> rerunPoints() const;
    /// Follows a clicked mark's link to a run or policy; ignores other links.
    void chooseLink(const QString& link);

Q_SIGNALS:
    void tableChanged();
    void policyChosen(const QString& policy);
    void rerunsChanged(); ///< the set of reruns has changed

private:
    PolicyData(const ViewContext& context, QObject* parent);
    void check();
    void findReruns();

    TraceData& data_;
    Selection& selection_;
    RunKey run_;
    QString stamp_;       ///< stamp of the run when the table was read
    bool failed_ = false; ///< the run has no table; sentence_ has the reason
    QString sentence_;
    std::map<QString, RunKey> reruns_; ///< reruns by policy
    std::shared_ptr<const ReplayTable> table_;
    Task loading_;
};

} // namespace ponderscope
