// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/library/library_rows.h"

#include "views/common/format.h"
#include "views/common/theme.h"
#include "views/library/library_model.h"
#include "views/library/sequence_model.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

void paint_row(QPainter* painter, const QRect& rect, const QStyleOptionViewItem& option,
               const Palette& colours) {
    const bool chosen = (option.state & QStyle::State_Selected) != 0;
    if (chosen || (option.state & QStyle::State_MouseOver) != 0) {
        painter->setPen(Qt::NoPen);
        painter->setBrush(chosen ? colours.selected : colours.hover);
        painter->drawRoundedRect(rect.adjusted(6, 1, -6, -1), 4, 4);
    }
    if ((option.state & QStyle::State_HasFocus) != 0 &&
        (option.state & QStyle::State_KeyboardFocusChange) != 0) {
        painter->setPen(colours.a);
        painter->setBrush(Qt::NoBrush);
        painter->drawRoundedRect(QRectF(rect).adjusted(6.5, 1.5, -6.5, -1.5), 4, 4);
    }
}

} // namespace

void RunRows::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
    QStyledItemDelegate::initStyleOption(option, index);
    option->palette.setColor(QPalette::HighlightedText, option->palette.color(QPalette::Text));
    for (const int role : {LibraryModel::DetailRole, LibraryModel::PolicyRole}) {
        if (const QString line = index.data(role).toString(); !line.isEmpty()) {
            option->text += QChar::LineSeparator + line;
        }
    }
}

void RunRows::setEditorData(QWidget* editor, const QModelIndex& index) const {
    if (!editor->property("filled").toBool()) {
        editor->setProperty("filled", true);
        QStyledItemDelegate::setEditorData(editor, index);
    }
}

SequenceRows::SequenceRows(const Theme& theme, QObject* parent)
    : QStyledItemDelegate(parent), theme_(theme) {}

void SequenceRows::paint(QPainter* painter, const QStyleOptionViewItem& option,
                         const QModelIndex& index) const {
    const Palette& colours = theme_.colours();
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    const QRect row = option.rect;
    paint_row(painter, row, option, colours);
    painter->setFont(theme_.body());
    painter->setPen(colours.soft);
    // The number column is as wide as the last number, so that every strip begins at the same x.
    const QString longest =
        index.siblingAtRow(index.model()->rowCount() - 1).data(Qt::DisplayRole).toString();
    const int wide = std::max(26, QFontMetrics(theme_.body()).horizontalAdvance(longest) + 2);
    painter->drawText(QRect(row.left() + 8, row.top(), wide, row.height()), Qt::AlignVCenter | Qt::AlignRight,
                      index.data(Qt::DisplayRole).toString());
    painter->drawText(row.adjusted(0, 0, -14, 0), Qt::AlignVCenter | Qt::AlignRight,
                      format_nats(index.data(SequenceModel::NllRole).toDouble()));
    const auto bars = index.data(SequenceModel::BarcodeRole).value<QList<float>>();
    const int before = 8 + wide + 12;
    const QRectF strip(row.left() + before, row.top() + 8, row.width() - before - 58, row.height() - 16);
    if (!bars.isEmpty() && strip.width() > 20) {
        painter->setRenderHint(QPainter::Antialiasing, false);
        const double each = strip.width() / static_cast<double>(bars.size());
        for (qsizetype i = 0; i < bars.size(); ++i) {
            if (!std::isnan(bars[i])) {
                // Whole pixels, to avoid seams.
                const int left = static_cast<int>(strip.left() + static_cast<double>(i) * each);
                const int right = static_cast<int>(strip.left() + static_cast<double>(i + 1) * each);
                painter->fillRect(QRect(left, static_cast<int>(strip.top()), right - left,
                                        static_cast<int>(strip.height())),
                                  QColor(theme_.textMap().at(static_cast<double>(bars[i]))));
            }
        }
    }
    painter->restore();
}

} // namespace ponderscope
