// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/runs_table_model.h"

#include "views/common/format.h"
#include "views/common/tables.h"

#include <cmath>

namespace ponderscope {

namespace {

/// The window's sign is A − B, and A stands first.
Estimate first_minus(const RunComparison::Run& run) {
    Estimate turned = run.difference;
    turned.value = -run.difference.value;
    turned.low = -run.difference.high;
    turned.high = -run.difference.low;
    return turned;
}

} // namespace

RunsTableModel::RunsTableModel(QObject* parent) : QAbstractTableModel(parent) {}

void RunsTableModel::setComparison(std::shared_ptr<const RunComparison> comparison,
                                   std::vector<RunKey> keys) {
    beginResetModel();
    comparison_ = std::move(comparison);
    keys_ = std::move(keys);
    endResetModel();
}

void RunsTableModel::setColours(std::function<QColor(const RunKey&)> colours) {
    colours_ = std::move(colours);
    coloursChanged();
}

void RunsTableModel::coloursChanged() {
    if (rowCount() > 0) {
        Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, 0), {Qt::DecorationRole});
    }
}

RunKey RunsTableModel::key(int row) const {
    return row >= 0 && static_cast<std::size_t>(row) < keys_.size() ? keys_[static_cast<std::size_t>(row)]
                                                                    : RunKey{};
}

int RunsTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() || !comparison_ ? 0 : static_cast<int>(comparison_->runs.size());
}

int RunsTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : column_count;
}

QString RunsTableModel::text(const RunComparison::Run& run, int column) const {
    const bool first = &run == &comparison_->runs.front();
    switch (column) {
    case name:
        return QString::fromStdString(run.label);
    case tokens:
        return format_count(static_cast<std::int64_t>(comparison_->places.size()));
    case nll:
        return with_interval(run.nll, false);
    case difference:
        return first ? QString::fromUtf16(no_value) : with_interval(first_minus(run), true);
    case perplexity:
        return format_nats(run.perplexity.value, 2);
    case bits_per_byte:
        return format_nats(run.bits_per_byte.value, 3);
    case steps:
        return run.info.max_steps == 0 ? QString::fromUtf16(no_value) : format_nats(run.mean_steps, 2);
    case flops:
        return format_si(run.mean_flops);
    default:
        return {};
    }
}

double RunsTableModel::value(const RunComparison::Run& run, int column) const {
    switch (column) {
    case tokens:
        return static_cast<double>(comparison_->places.size());
    case nll:
        return run.nll.value;
    case difference:
        return first_minus(run).value;
    case perplexity:
        return run.perplexity.value;
    case bits_per_byte:
        return run.bits_per_byte.value;
    case steps:
        return run.mean_steps;
    case flops:
        return run.mean_flops;
    default:
        return 0;
    }
}

QVariant RunsTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || !comparison_ || index.row() >= rowCount() || index.column() >= column_count) {
        return {};
    }
    const RunComparison::Run& run = comparison_->runs[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return text(run, index.column());
    case Qt::UserRole:
        return index.column() == name ? QVariant(text(run, name)) : QVariant(value(run, index.column()));
    case interval_role:
        if (index.column() == nll || index.column() == difference) {
            const Estimate estimate = index.column() == nll ? run.nll : first_minus(run);
            return QVariantList{estimate.low, estimate.high};
        }
        return {};
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(
            Qt::Alignment((index.column() == name ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
    case Qt::DecorationRole:
        return index.column() == name && colours_ ? QVariant(colours_(key(index.row()))) : QVariant();
    case Qt::ToolTipRole:
        if (index.column() == nll || index.column() == difference) {
            const Estimate estimate = index.column() == nll ? run.nll : first_minus(run);
            if (std::isnan(estimate.value)) {
                return {};
            }
            if (comparison_->replicates == 0) {
                return tr("95 % interval %1 to %2: Student's, over the same clusters or blocks (%3)")
                    .arg(format_nats(estimate.low, 4), format_nats(estimate.high, 4),
                         QString::fromStdString(comparison_->resampling.words()));
            }
            return tr("95 % interval %1 to %2: paired bootstrap, %3 replicates, %4")
                .arg(format_nats(estimate.low, 4), format_nats(estimate.high, 4),
                     format_count(comparison_->replicates),
                     QString::fromStdString(comparison_->resampling.words()));
        }
        if (index.column() == name) {
            QString all =
                tr("%1, %2, policy %3, %4 %5")
                    .arg(QString::fromStdString(run.info.method),
                         QString::fromStdString(run.info.architecture),
                         QString::fromStdString(run.info.policy), QString::fromStdString(run.info.device),
                         QString::fromStdString(run.info.dtype));
            for (int column = tokens; column < column_count; ++column) {
                all += QStringLiteral("\n%1: %2")
                           .arg(headerData(column, Qt::Horizontal, Qt::DisplayRole).toString(),
                                text(run, column));
            }
            return all;
        }
        return {};
    default:
        return {};
    }
}

QVariant RunsTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= column_count) {
        return {};
    }
    if (role == Qt::TextAlignmentRole) {
        return QVariant::fromValue(
            Qt::Alignment((section == name ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
    }
    if (role == Qt::DisplayRole) {
        const QString names[] = {tr("Run"),        tr("Tokens"),    tr("NLL (nats)"), tr("A − run"),
                                 tr("Perplexity"), tr("Bits/byte"), tr("Steps"),      tr("FLOPs/token")};
        return names[section];
    }
    if (role == Qt::ToolTipRole && section == difference) {
        return tr("The mean NLL of A minus that of this run, over the same tokens. Below 0, A is better.");
    }
    return {};
}

} // namespace ponderscope
