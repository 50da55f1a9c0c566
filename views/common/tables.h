// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/data_table.h"

#include <QAbstractTableModel>
#include <QColor>
#include <QString>

#include <functional>

class QAbstractItemDelegate;
class QAbstractItemModel;
class QObject;
class QTableView;

namespace ponderscope {

class Theme;

enum class TableForm {
    text,    ///< tabs between cells
    csv,     ///< csv_of (core/stats/data_table.h)
    markdown ///< numbers as on the screen
};
/// All rows of \p model, in its order. \p model: a DataTableModel, or a proxy of a DataTableModel.
QString table_text(const QAbstractItemModel& model, TableForm form);

/// "3.214 ± 0.041" for a symmetric interval, else both ends. \p difference: numbers have signs.
QString with_interval(const Estimate& estimate, bool difference, int decimals = 3);

/// Sets the common look and behaviour of the window's tables: selection of whole rows, no grid, no editing, a
/// quiet header. Ctrl+C and a context menu copy as text, CSV or Markdown. \p theme must outlive the table.
void furnish_table(QTableView& table, Theme& theme);

/// Draws a colour (Qt::DecorationRole) as a dot instead of Qt's square. Shortens names in the middle, where
/// they differ least. \p inset: pixels before the dot.
QAbstractItemDelegate* dot_delegate(QObject* parent, int inset = 0);

/// The columns of a table that have a title, in the window's formats. Values for sorting are in Qt::UserRole.
class DataTableModel : public QAbstractTableModel {
    Q_OBJECT
public:
    using QAbstractTableModel::QAbstractTableModel;

    void setTable(DataTable table);
    [[nodiscard]] const DataTable& table() const { return table_; }
    /// Colour of the dot before the first column, by row.
    void setColours(std::function<QColor(int row)> colours);
    void coloursChanged();
    /// Tooltips of cells; by row and column.
    void setTips(std::function<QString(int row, int column)> tips) { tips_ = std::move(tips); }
    [[nodiscard]] int columnOf(const char* key) const; ///< -1: not shown

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] std::size_t column(int section) const { return shown_[static_cast<std::size_t>(section)]; }

    DataTable table_;
    std::vector<std::size_t> shown_; ///< columns with a title
    std::function<QColor(int)> colours_;
    std::function<QString(int, int)> tips_;
};

/// A cell as the window shows it.
QString window_text(const Cell& cell, const TableColumn& column);

} // namespace ponderscope
