// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/notes/notes_model.h"

#include "views/common/format.h"

namespace ponderscope {

NotesModel::NotesModel(const ViewContext& context, Notes& notes, QObject* parent)
    : QAbstractListModel(parent), context_(context), notes_(notes) {
    connect(&notes_, &Notes::changed, this, &NotesModel::reload);
    reload();
}

void NotesModel::reload() {
    beginResetModel();
    entries_.clear();
    for (const QString& trace : context_.data.traces()) {
        for (Note& note : notes_.of(trace)) {
            entries_.push_back({trace, std::move(note)});
        }
    }
    endResetModel();
}

const NotesModel::Entry* NotesModel::entry(const QModelIndex& index) const {
    return index.isValid() && index.row() < rowCount() ? &entries_[static_cast<std::size_t>(index.row())]
                                                       : nullptr;
}

int NotesModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(entries_.size());
}

QVariant NotesModel::data(const QModelIndex& index, int role) const {
    const Entry* one = entry(index);
    if (one == nullptr) {
        return {};
    }
    switch (role) {
    case Qt::DisplayRole:
        return one->note.text.isEmpty() ? tr("bookmark") : one->note.text;
    case Qt::ToolTipRole:
        return plain_tip(data(index, Qt::AccessibleTextRole).toString());
    case Qt::AccessibleTextRole:
        return tr("“%1”, sequence %2, token %3: %4")
            .arg(one->note.word, format_count(one->note.sequence + 1), format_count(one->note.token),
                 one->note.text.isEmpty() ? tr("bookmark") : one->note.text);
    case TraceRole:
        return one->trace;
    case SequenceRole:
        return one->note.sequence;
    case TokenRole:
        return one->note.token;
    case WordRole:
        return one->note.word;
    default:
        return {};
    }
}

} // namespace ponderscope
