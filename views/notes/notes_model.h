// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/notes/notes.h"

#include <QAbstractListModel>

namespace ponderscope {

/// Notes and bookmarks of all open traces, in the order of traces and of the text.
class NotesModel : public QAbstractListModel {
    Q_OBJECT
public:
    enum Role { TraceRole = Qt::UserRole, SequenceRole, TokenRole, WordRole };
    struct Entry {
        QString trace;
        Note note;
    };
    NotesModel(const ViewContext& context, Notes& notes, QObject* parent = nullptr);

    [[nodiscard]] const Entry* entry(const QModelIndex& index) const;
    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

private:
    void reload();

    ViewContext context_;
    Notes& notes_;
    std::vector<Entry> entries_;
};

} // namespace ponderscope
