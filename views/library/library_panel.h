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
class PanelHeader;
class SequenceModel;

/// The left dock: traces with their runs, and the sequences of run A. A click shows a run as A; a click on
/// the "B" at a row's end, or B on the keyboard, compares with it.
class LibraryPanel : public QWidget, public ShowsCommand {
    Q_OBJECT
public:
    explicit LibraryPanel(const ViewContext& context, QWidget* parent = nullptr);
    [[nodiscard]] QTreeView& runs() { return *runs_; }
    [[nodiscard]] QListView& sequences() { return *sequences_; }
    [[nodiscard]] LibraryModel& model() { return *model_; }
    [[nodiscard]] SequenceModel& sequenceModel() { return *sequenceModel_; }
    [[nodiscard]] ViewCommand viewCommand() const override;
    /// Actions for a trace or a run.
    void fillMenu(QMenu& menu, const QModelIndex& index);
    [[nodiscard]] QSize sizeHint() const override { return {252, 600}; }

Q_SIGNALS:
    void renameRequested(const ponderscope::RunKey& run, const QString& name);
    void removeRequested(const ponderscope::RunKey& run);
    /// Copy it into a trace of the user's choice.
    void keepRequested(const ponderscope::RunKey& run);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void choose(const QModelIndex& index, bool asB);
    void showMenu(const QPoint& position);
    void showRun();      ///< the row of run A
    void showSequence(); ///< the row of the selected sequence, scrolled to when another one is selected
    void showCounts();
    void showHint();
    void fitRuns(); ///< the runs take what they need, the sequences the rest

    ViewContext context_;
    LibraryModel* model_;
    SequenceModel* sequenceModel_;
    QTreeView* runs_;
    QListView* sequences_;
    PanelHeader* sequenceHeader_;
    QLabel* hint_; ///< hint while no trace is open
};

} // namespace ponderscope
