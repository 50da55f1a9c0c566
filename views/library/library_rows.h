// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace ponderscope {

class Theme;

/// Draws rows of LibraryModel: a run's colour, name and numbers, and whether it is A or B.
class RunRows : public QStyledItemDelegate {
    Q_OBJECT
public:
    explicit RunRows(const Theme& theme, QObject* parent = nullptr);
    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override;
    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    /// Fills the editor only when it opens, so that updates of a recording do not overwrite typed text.
    void setEditorData(QWidget* editor, const QModelIndex& index) const override;
    void updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                              const QModelIndex& index) const override;
    /// The area of a row's "B" button. A click on it selects the run as B.
    [[nodiscard]] static QRect sideRect(const QRect& row);

private:
    const Theme& theme_;
};

/// Draws rows of SequenceModel: number, strip, mean NLL.
class SequenceRows : public QStyledItemDelegate {
    Q_OBJECT
public:
    explicit SequenceRows(const Theme& theme, QObject* parent = nullptr);
    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override;
    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    const Theme& theme_;
};

} // namespace ponderscope
