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

RunRows::RunRows(const Theme& theme, QObject* parent) : QStyledItemDelegate(parent), theme_(theme) {}

QSize RunRows::sizeHint(const QStyleOptionViewItem&, const QModelIndex& index) const {
    const bool third = !index.data(LibraryModel::PolicyRole).toString().isEmpty();
    return {160, !index.parent().isValid() ? 28 : third ? 58 : 42};
}

QRect RunRows::sideRect(const QRect& row) {
    constexpr int two_lines = 42;
    return {row.right() - 32, row.top() + (std::min(row.height(), two_lines) - 18) / 2, 18, 18};
}

void RunRows::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    const Palette& colours = theme_.colours();
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    const QString name = index.data(Qt::DisplayRole).toString();
    if (!index.parent().isValid()) {
        painter->setFont(theme_.strong());
        painter->setPen(colours.text);
        const QString remark = index.data(LibraryModel::DetailRole).toString();
        const int taken = remark.isEmpty() ? 0 : QFontMetrics(theme_.small()).horizontalAdvance(remark) + 10;
        const QRect field = option.rect.adjusted(32, 0, -12 - taken, 0);
        painter->drawText(field, Qt::AlignVCenter | Qt::AlignLeft,
                          QFontMetrics(theme_.strong()).elidedText(name, Qt::ElideMiddle, field.width()));
        painter->setFont(theme_.small());
        painter->setPen(colours.soft);
        painter->drawText(option.rect.adjusted(32, 0, -12, 0), Qt::AlignVCenter | Qt::AlignRight, remark);
        const bool open = (option.state & QStyle::State_Open) != 0;
        const QPointF middle(20, option.rect.center().y() + 0.5);
        QPolygonF triangle;
        if (open) {
            triangle << middle + QPointF(-4, -2.5) << middle + QPointF(4, -2.5) << middle + QPointF(0, 3);
        } else {
            triangle << middle + QPointF(-2.5, -4) << middle + QPointF(-2.5, 4) << middle + QPointF(3, 0);
        }
        painter->setPen(Qt::NoPen);
        painter->setBrush(colours.text);
        painter->drawPolygon(triangle);
        painter->restore();
        return;
    }
    // Name and numbers, and the policy as a third line where it is not the model's own.
    const QString policy = index.data(LibraryModel::PolicyRole).toString();
    constexpr int third = 16;
    const QRect whole(0, option.rect.top(), option.rect.right() + 1, option.rect.height());
    const QRect row = policy.isEmpty() ? whole : whole.adjusted(0, 0, 0, -third);
    const QString side = index.data(LibraryModel::SideRole).toString();
    paint_row(painter, whole, option, colours);
    if (!policy.isEmpty()) {
        painter->setFont(theme_.small());
        painter->setPen(colours.soft);
        const QRect line(32, row.bottom() - 3, whole.right() - 44, third);
        painter->drawText(line, Qt::AlignVCenter | Qt::AlignLeft,
                          QFontMetrics(theme_.small()).elidedText(policy, Qt::ElideMiddle, line.width()));
    }
    painter->setPen(Qt::NoPen);
    painter->setBrush(index.data(LibraryModel::ColourRole).value<QColor>());
    painter->drawEllipse(QRectF(15, row.top() + 9, 10, 10));

    const QRect badge = sideRect(row);
    const bool offered = side.isEmpty() && (option.state & QStyle::State_MouseOver) != 0;
    const int end = side.isEmpty() && !offered ? row.right() - 8 : badge.left();
    const QRect text = QRect(32, row.top() + 4, end - 36, row.height() - 8);
    const QFont font = side.contains(u'A') ? theme_.strong() : theme_.body();
    painter->setFont(font);
    painter->setPen(colours.text);
    painter->drawText(text, Qt::AlignTop | Qt::AlignLeft,
                      QFontMetrics(font).elidedText(name, Qt::ElideMiddle, text.width()));
    const QString state = index.data(LibraryModel::StateRole).toString();
    QString detail = index.data(LibraryModel::DetailRole).toString();
    const QFontMetrics small(theme_.small());
    painter->setFont(theme_.small());
    painter->setPen(colours.soft);
    const int wide = row.right() - 44;
    painter->drawText(QRect(32, text.top(), wide, text.height()), Qt::AlignBottom | Qt::AlignLeft,
                      small.elidedText(detail, Qt::ElideRight, wide));
    if (!state.isEmpty()) {
        const int at = 32 + small.horizontalAdvance(detail) + 10;
        painter->setPen(colours.warningText);
        painter->drawText(QRect(at, text.top(), row.right() - at - 10, text.height()),
                          Qt::AlignBottom | Qt::AlignLeft, state);
    }
    if (!side.isEmpty() || offered) {
        const bool a = side.contains(u'A');
        const QRectF box = QRectF(badge).translated(0, -7);
        painter->setPen(offered ? QPen(colours.border, 1) : QPen(Qt::NoPen));
        painter->setBrush(offered ? QBrush(colours.panel) : QBrush(a ? colours.a : colours.b));
        painter->drawRoundedRect(box.adjusted(1, 1, -1, -1), 3, 3);
        painter->setFont(theme_.caps());
        painter->setPen(offered ? colours.soft : a ? colours.onA : colours.onB);
        painter->drawText(box, Qt::AlignCenter, a ? u"A"_s : u"B"_s);
    }
    painter->restore();
}

void RunRows::setEditorData(QWidget* editor, const QModelIndex& index) const {
    if (!editor->property("filled").toBool()) {
        editor->setProperty("filled", true);
        QStyledItemDelegate::setEditorData(editor, index);
    }
}

void RunRows::updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                                   const QModelIndex&) const {
    editor->setGeometry(28, option.rect.top() + 1, option.rect.right() - 36, 26);
}

SequenceRows::SequenceRows(const Theme& theme, QObject* parent)
    : QStyledItemDelegate(parent), theme_(theme) {}

QSize SequenceRows::sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const {
    return {160, 28};
}

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
                // Whole pixels, without seams.
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
