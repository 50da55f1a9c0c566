// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/task.h"
#include "views/common/view_context.h"

#include <QTimer>
#include <QWidget>

#include <map>
#include <memory>
#include <string>
#include <vector>

class QPushButton;
class QSortFilterProxyModel;
class QTableView;
class QToolButton;

namespace ponderscope {

class PolicyData;
class PolicyTableModel;

/// The policies of a run as a table: one row a policy where its slider stands, one more for every rerun.
/// Sorts, copies, asks for reruns of what is selected. Measures in the background while it can be seen.
class PolicyTable : public QWidget {
    Q_OBJECT
public:
    PolicyTable(const ViewContext& context, PolicyData& shared, QWidget* parent = nullptr);
    ~PolicyTable() override;

    /// The slider of its kind stands there now: the row of the kind follows.
    void follow(const QString& spec);
    /// Where the slider of a kind stood last; empty: it was not moved yet.
    [[nodiscard]] QString followed(const std::string& kind) const;
    /// The row that is looked at elsewhere.
    void setCurrent(const QString& spec);
    [[nodiscard]] QStringList selected() const; ///< as the table shows them
    /// A rerun is under way: there is no second one at a time.
    void setRunning(bool running);
    void setOnScreen(bool on);
    [[nodiscard]] bool isBusy() const { return measuring_.isBusy() || delay_.isActive(); }
    [[nodiscard]] PolicyTableModel& model() { return *model_; }
    [[nodiscard]] QTableView& table() { return *table_; }
    [[nodiscard]] QPushButton& rerunButton() { return *rerun_; }

Q_SIGNALS:
    void policyChosen(const QString& spec); ///< its row
    void rerunRequested(const QStringList& specs);
    void figureRequested();
    void backRequested(); ///< to the one policy

protected:
    void changeEvent(QEvent* event) override;

private:
    [[nodiscard]] std::vector<std::string> wanted() const;
    void forget();
    void measure();
    void showState();

    ViewContext context_;
    PolicyData& shared_;
    PolicyTableModel* model_;
    QSortFilterProxyModel* sorted_;
    QTableView* table_;
    QPushButton* rerun_;
    std::map<std::string, std::string> followed_; ///< by kind
    std::map<std::string, RunKey> measured_;      ///< with which rerun; a row each
    RunKey full_;                                 ///< what the reruns were set against
    bool started_ = false;                        ///< every kind has a row
    bool running_ = false;
    bool filling_ = false; ///< what is current changes by itself
    bool onScreen_ = false;
    QTimer delay_;
    Task measuring_;
};

} // namespace ponderscope
