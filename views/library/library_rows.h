// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace ponderscope {

class Theme;

/// Rows of LibraryModel. Below a run's name: its numbers, its state, and a policy other than `learned`.
class RunRows : public QStyledItemDelegate {
    Q_OBJECT
public:
    using QStyledItemDelegate::QStyledItemDelegate;
    /// Fills the editor only when it opens, so that updates of a recording do not overwrite typed text.
    void setEditorData(QWidget* editor, const QModelIndex& index) const override;

protected:
    void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;
};

/// Draws rows of SequenceModel: number, strip, mean NLL.
class SequenceRows : public QStyledItemDelegate {
    Q_OBJECT
public:
    explicit SequenceRows(const Theme& theme, QObject* parent = nullptr);
    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override;
    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& /*option*/,
                                 const QModelIndex& /*index*/) const override {
        return {160, 28};
    }

private:
    const Theme& theme_;
};

} // namespace ponderscope
