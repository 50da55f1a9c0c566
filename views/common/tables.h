// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"

#include <QString>

class QAbstractItemDelegate;
class QAbstractItemModel;
class QObject;
class QTableView;

namespace ponderscope {

class Theme;

/// What a table of the window gives beside texts: its value in Qt::UserRole (a number, for sorting and CSV),
/// and the ends of an interval as a list of two in this role.
inline constexpr int interval_role = Qt::UserRole + 1;

enum class TableForm {
    text,    ///< tabulators between cells
    csv,     ///< numbers with all their digits, intervals in two columns of their own (RFC 4180)
    markdown ///< as it stands on the screen
};
/// All rows in the order of the model, with its header.
QString table_text(const QAbstractItemModel& model, TableForm form);

/// "3.214 ± 0.041" where the interval is even, as it nearly always is; else both ends. \p difference: with
/// signs.
QString with_interval(const Estimate& estimate, bool difference);

/// The look and the habits that tables of the window share: whole rows, no grid, no editing, a quiet header;
/// Ctrl+C and a context menu copy it as text, CSV or Markdown. \p theme outlives the table.
void furnish_table(QTableView& table, Theme& theme);

/// A colour (Qt::DecorationRole) as a dot, like everywhere else in the window, not as the square that Qt
/// makes of it; names are cut in the middle, where they differ least. \p inset: pixels before it.
QAbstractItemDelegate* dot_delegate(QObject* parent, int inset = 0);

} // namespace ponderscope
