// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/shortcut_dialog.h"

#include "views/common/theme.h"

#include <QDialogButtonBox>
#include <QHeaderView>
#include <QTreeWidget>
#include <QVBoxLayout>

namespace ponderscope {

ShortcutDialog::ShortcutDialog(const std::vector<CommandModel::Command>& commands, const Theme& theme,
                               QWidget* parent)
    : QDialog(parent) {
    setWindowTitle(tr("Keyboard shortcuts"));
    auto* list = new QTreeWidget(this);
    list->setColumnCount(2);
    list->setHeaderLabels({tr("What"), tr("Keys")});
    list->setRootIsDecorated(false);
    list->setFrameShape(QFrame::NoFrame);
    list->setSelectionMode(QAbstractItemView::NoSelection);
    list->setAccessibleName(tr("Keyboard shortcuts"));
    list->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    list->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    list->header()->setAccessibleName(tr("Columns"));
    const auto heading = [&](const QString& text) {
        auto* item = new QTreeWidgetItem(list, {text});
        item->setFont(0, theme.strong());
        item->setFirstColumnSpanned(true);
    };
    const auto line = [&](const QString& what, const QString& keys) {
        new QTreeWidgetItem(list, {what, keys});
    };
    heading(tr("Menus"));
    for (const CommandModel::Command& command : commands) {
        if (command.action && !command.action->shortcut().isEmpty()) {
            line(command.text, command.action->shortcut().toString(QKeySequence::NativeText));
        }
    }
    heading(tr("In the text"));
    line(tr("Token by token, line by line, page by page"), tr("Arrows, Page up, Page down"));
    line(tr("Beginning and end of the line"), tr("Home, End"));
    line(tr("Beginning and end of the sequence"), tr("Ctrl+Home, Ctrl+End"));
    line(tr("Deselect the token"), tr("Escape"));
    line(tr("Zoom, from one token per line to a map of all sequences"), tr("Ctrl+wheel"));
    line(tr("What if, notes, search for this token"), tr("Menu key, Shift+F10, right button"));
    heading(tr("In the find bar"));
    line(tr("Next, previous"), tr("Enter, Shift+Enter"));
    line(tr("Close"), tr("Escape"));
    heading(tr("While presenting (F5)"));
    line(tr("Next saved view, previous one"), tr("Page down, Page up"));
    line(tr("End"), tr("Escape, F5"));
    heading(tr("In Think"));
    line(tr("Generate"), tr("Ctrl+Enter"));
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto* column = new QVBoxLayout(this);
    column->addWidget(list, 1);
    column->addWidget(buttons);
    resize(520, 560);
}

} // namespace ponderscope
