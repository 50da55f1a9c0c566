// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"

#include <QPainter>
#include <QStyledItemDelegate>

namespace ponderscope {

/// Rows of a list that a view draws itself: the panel's background, or the selection's, then paintRow.
class RowDelegate : public QStyledItemDelegate {
public:
    /// \p theme outlives the delegate; \p hint is the size of a row.
    RowDelegate(Theme& theme, QSize hint, QObject* parent)
        : QStyledItemDelegate(parent), theme_(theme), hint_(hint) {}
    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const final {
        return {hint_.width(), theme_.scaled(hint_.height())};
    }
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const final {
        painter->save();
        painter->fillRect(option.rect, (option.state & QStyle::State_Selected) != 0
                                           ? theme_.colours().selected
                                           : theme_.colours().panel);
        paintRow(*painter, option.rect, index);
        painter->restore();
    }

protected:
    virtual void paintRow(QPainter& painter, const QRect& rect, const QModelIndex& index) const = 0;
    Theme& theme_;

private:
    QSize hint_;
};

} // namespace ponderscope
