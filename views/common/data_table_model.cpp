// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/data_table_model.h"

#include "views/common/format.h"
#include "views/common/tables.h"

#include <cmath>

namespace ponderscope {
namespace {

QVariant value_of_cell(const Cell& cell, const TableColumn& column) {
    if (const auto* text = std::get_if<std::string>(&cell)) {
        return QString::fromStdString(*text);
    }
    if (const auto* count = std::get_if<std::int64_t>(&cell)) {
        return QVariant::fromValue(static_cast<qint64>(*count));
    }
    if (const auto* yes = std::get_if<bool>(&cell)) {
        return *yes;
    }
    return column.format == CellFormat::text ? QVariant(QString()) : QVariant(cell_value(cell));
}

} // namespace

QString window_text(const Cell& cell, const TableColumn& column) {
    if (const auto* text = std::get_if<std::string>(&cell)) {
        return QString::fromStdString(*text);
    }
    if (const auto* count = std::get_if<std::int64_t>(&cell)) {
        return format_count(*count);
    }
    if (const auto* yes = std::get_if<bool>(&cell)) {
        return *yes ? QStringLiteral("yes") : QString();
    }
    const double value = cell_value(cell);
    if (std::isnan(value)) {
        return QString::fromUtf16(no_value);
    }
    const auto* estimate = std::get_if<Estimate>(&cell);
    switch (column.format) {
    case CellFormat::difference:
        return estimate != nullptr ? with_interval(*estimate, true, column.decimals)
                                   : format_difference(value, column.decimals);
    case CellFormat::share:
        return QStringLiteral("%1 %").arg(format_nats(100 * value, column.decimals));
    case CellFormat::p:
        return format_probability(value);
    case CellFormat::si:
        return format_si(value);
    case CellFormat::significant:
        return format_number(value, column.decimals);
    default:
        return estimate != nullptr && !column.brief ? with_interval(*estimate, false, column.decimals)
                                                    : format_nats(value, column.decimals);
    }
}

void DataTableModel::setTable(DataTable table) {
    beginResetModel();
    table_ = std::move(table);
    shown_.clear();
    for (std::size_t c = 0; c < table_.columns.size(); ++c) {
        if (!table_.columns[c].title.empty()) {
            shown_.push_back(c);
        }
    }
    endResetModel();
}

void DataTableModel::setColours(std::function<QColor(int)> colours) {
    colours_ = std::move(colours);
    coloursChanged();
}

void DataTableModel::coloursChanged() {
    if (rowCount() > 0) {
        Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, 0), {Qt::DecorationRole});
    }
}

int DataTableModel::columnOf(const char* key) const {
    for (std::size_t c = 0; c < shown_.size(); ++c) {
        if (table_.columns[shown_[c]].key == key) {
            return static_cast<int>(c);
        }
    }
    return -1;
}

int DataTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(table_.rows.size());
}

int DataTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(shown_.size());
}

QVariant DataTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount() || index.column() >= columnCount()) {
        return {};
    }
    const std::size_t c = column(index.column());
    const TableColumn& of = table_.columns[c];
    const Cell& cell = table_.rows[static_cast<std::size_t>(index.row())][c];
    switch (role) {
    case Qt::DisplayRole:
        return window_text(cell, of);
    case Qt::UserRole:
        return value_of_cell(cell, of);
    case Qt::TextAlignmentRole:
        return headerData(index.column(), Qt::Horizontal, role);
    case Qt::DecorationRole:
        return index.column() == 0 && colours_ ? QVariant(colours_(index.row())) : QVariant();
    case Qt::ToolTipRole:
        return tips_ ? QVariant(tips_(index.row(), index.column())) : QVariant();
    default:
        return {};
    }
}

QVariant DataTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) {
        return {};
    }
    const TableColumn& of = table_.columns[column(section)];
    switch (role) {
    case Qt::DisplayRole:
        return QString::fromStdString(of.title);
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(Qt::Alignment(
            (of.format == CellFormat::text ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
    case Qt::ToolTipRole:
        return of.tip.empty() ? QVariant() : QVariant(QString::fromStdString(of.tip));
    default:
        return {};
    }
}

} // namespace ponderscope
