// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/halting/token_types_model.h"

#include "views/common/format.h"

namespace ponderscope {

void TokenTypesModel::setStats(std::shared_ptr<const HaltingStats> stats) {
    beginResetModel();
    stats_ = std::move(stats);
    endResetModel();
}

std::int32_t TokenTypesModel::id(int row) const {
    return row >= 0 && row < rowCount() ? stats_->types[static_cast<std::size_t>(row)].id : -1;
}

int TokenTypesModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() || !stats_ ? 0 : static_cast<int>(stats_->types.size());
}

int TokenTypesModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : column_count;
}

QVariant TokenTypesModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount() || index.column() >= column_count) {
        return {};
    }
    const HaltingStats::TokenType& type = stats_->types[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        switch (index.column()) {
        case token:
            return type.label;
        case count:
            return format_count(type.count);
        case steps:
            return stats_->max_steps == 0 ? QString::fromUtf16(no_value) : format_nats(type.steps);
        case nll:
            return format_nats(type.nll);
        default:
            return QStringLiteral("%1 %").arg(type.dropped * 100, 0, 'f', 0);
        }
    case Qt::UserRole:
        switch (index.column()) {
        case token:
            return type.label;
        case count:
            return QVariant::fromValue(static_cast<qint64>(type.count));
        case steps:
            return type.steps;
        case nll:
            return type.nll;
        default:
            return type.dropped;
        }
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(
            Qt::Alignment((index.column() == token ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
    case Qt::ToolTipRole:
        return tr("token id %1").arg(type.id);
    default:
        return {};
    }
}

QVariant TokenTypesModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= column_count) {
        return {};
    }
    if (role == Qt::TextAlignmentRole) {
        return QVariant::fromValue(
            Qt::Alignment((section == token ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
    }
    if (role == Qt::DisplayRole) {
        const QString taken = halting_title(HaltingChart::steps, stats_ ? stats_->unit : "step");
        const QString names[] = {tr("Token"), tr("Count"), taken, tr("NLL"), tr("Stops early")};
        return names[section];
    }
    if (role == Qt::ToolTipRole && section == dropped) {
        return tr("Share of its places that stopped before the last step");
    }
    return {};
}

} // namespace ponderscope
