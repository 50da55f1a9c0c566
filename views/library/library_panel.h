// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_command.h"
#include "views/common/view_context.h"

#include <QWidget>

class QLabel;
class QListView;
class QMenu;
class QModelIndex;
class QTreeView;

namespace ponderscope {

class LibraryModel;
class SequenceModel;

/// Traces with their runs, and the sequences of run A. A click selects run A. The "B" at a row's end, or the
/// key B, selects run B.
class LibraryPanel : public QWidget, public ShowsCommand {
    Q_OBJECT
public:
    explicit LibraryPanel(const ViewContext& context, QWidget* parent = nullptr);
    [[nodiscard]] QTreeView& runs() { return *runs_; }
    [[nodiscard]] QListView& sequences() { return *sequences_; }
    [[nodiscard]] LibraryModel& model() { return *model_; }
    [[nodiscard]] SequenceModel& sequenceModel() { return *sequenceModel_; }
    [[nodiscard]] ViewCommand viewCommand() const override;
    /// Adds actions for a trace or a run.
    void fillMenu(QMenu& menu, const QModelIndex& index);
    [[nodiscard]] QSize sizeHint() const override { return {252, 600}; }

Q_SIGNALS:
    void renameRequested(const ponderscope::RunKey& run, const QString& name);
    void removeRequested(const ponderscope::RunKey& run);
    /// The user wants to copy the run into a trace.
    void keepRequested(const ponderscope::RunKey& run);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void choose(const QModelIndex& index, bool asB);
    void showMenu(const QPoint& position);
    void showRun();      ///< selects the row of run A
    void showSequence(); ///< selects the row of the selected sequence, and scrolls to this row
    void showCounts();
    void showHint();
    void fitRuns(); ///< gives the runs the height that they need, and the sequences the rest

    ViewContext context_;
    LibraryModel* model_;
    SequenceModel* sequenceModel_;
    QTreeView* runs_;
    QListView* sequences_;
    QLabel* sequenceHeader_; ///< "SEQUENCES  12"
    QLabel* hint_;           ///< shown while no trace is open
};

} // namespace ponderscope
