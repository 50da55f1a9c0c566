// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/data_table.h"

#include <QAbstractTableModel>
#include <QColor>

#include <functional>

namespace ponderscope {

/// The titled columns of a table, in the window's formats. Values for sorting are in Qt::UserRole.
class DataTableModel : public QAbstractTableModel {
    Q_OBJECT
public:
    using QAbstractTableModel::QAbstractTableModel;

    void setTable(DataTable table);
    [[nodiscard]] const DataTable& table() const { return table_; }
    /// Of the dot before the first column, by row.
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
