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

enum class TableForm {
    text,    ///< tabulators between cells
    csv,     ///< csv_of (core/stats/data_table.h)
    markdown ///< as it stands on the screen
};
/// All rows in the order of \p model: a DataTableModel, or what sorts and filters one.
QString table_text(const QAbstractItemModel& model, TableForm form);

/// "3.214 ± 0.041" where the interval is even, as it nearly always is; else both ends. \p difference: with
/// signs.
QString with_interval(const Estimate& estimate, bool difference, int decimals = 3);

/// The look and the habits that tables of the window share: whole rows, no grid, no editing, a quiet header;
/// Ctrl+C and a context menu copy it as text, CSV or Markdown. \p theme outlives the table.
void furnish_table(QTableView& table, Theme& theme);

/// A colour (Qt::DecorationRole) as a dot, like everywhere else in the window, not as the square that Qt
/// makes of it; names are cut in the middle, where they differ least. \p inset: pixels before it.
QAbstractItemDelegate* dot_delegate(QObject* parent, int inset = 0);

} // namespace ponderscope
