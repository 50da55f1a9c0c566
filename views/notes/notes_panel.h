// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_command.h"
#include "views/notes/notes_model.h"

#include <QWidget>

class QLabel;
class QListView;
class QToolButton;

namespace ponderscope {

/// The list of notes and bookmarks; a click goes to the word.
class NotesPanel : public QWidget, public ShowsCommand {
    Q_OBJECT
public:
    explicit NotesPanel(const ViewContext& context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;
    [[nodiscard]] Notes& notes() { return *notes_; }
    [[nodiscard]] NotesModel& model() { return *model_; }

public Q_SLOTS:
    /// Asks for the words of a note on the selected token.
    void editSelected();
    /// A bookmark on the selected token, or none if it carries one.
    void toggleBookmark();
    void removeCurrent();
    void goTo(const QModelIndex& index);
    /// The next one after the selected token, in this sequence and those after it; +1 or -1.
    void step(int direction);

private:
    void showState();
    [[nodiscard]] qint64 token() const; ///< selected, if it is there; else -1

    ViewContext context_;
    Notes* notes_;
    NotesModel* model_;
    QListView* list_;
    QLabel* hint_;
    QToolButton* add_;
    QToolButton* mark_;
    QToolButton* remove_;
};

} // namespace ponderscope
