// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/policy_table_model.h"

#include "views/common/format.h"
#include "views/common/tables.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

bool of_rerun(int column) {
    return column == PolicyTableModel::steps_rerun || column == PolicyTableModel::difference_rerun ||
           column == PolicyTableModel::saved_rerun;
}

bool is_difference(int column) {
    return column == PolicyTableModel::difference || column == PolicyTableModel::difference_rerun ||
           column == PolicyTableModel::blind;
}

/// What a column of differences shows.
const Estimate& difference_in(const PolicyOutcome& outcome, int column) {
    return column == PolicyTableModel::blind ? outcome.against_blind : outcome.difference;
}

/// What a column is about; null: there is no rerun.
const PolicyOutcome* outcome_of(const PolicyRow& row, int column) {
    return !of_rerun(column) ? &row.replayed : row.rerun ? &*row.rerun : nullptr;
}

const PolicyKind& kind_of(const PolicyRow& row) {
    return *PolicySpec::parse(row.spec).kind;
}

} // namespace

QString PolicyTableModel::tr(const char* text) {
    return QCoreApplication::translate("Policy", text);
}

void PolicyTableModel::setRows(std::vector<PolicyRow> rows) {
    // One by one: a reset would lose what is selected.
    const auto known = [&](const std::string& spec) {
        return std::find_if(rows.begin(), rows.end(), [&](const PolicyRow& row) { return row.spec == spec; });
    };
    for (int at = rowCount() - 1; at >= 0; --at) {
        if (known(rows_[static_cast<std::size_t>(at)].spec) == rows.end()) {
            beginRemoveRows({}, at, at);
            rows_.erase(rows_.begin() + at);
            endRemoveRows();
        }
    }
    for (PolicyRow& row : rows) {
        const int at = rowOf(QString::fromStdString(row.spec));
        if (at >= 0) {
            rows_[static_cast<std::size_t>(at)] = std::move(row);
            Q_EMIT dataChanged(index(at, 0), index(at, column_count - 1));
            continue;
        }
        // In the order of the kinds, in each by threshold.
        const auto before = [](const PolicyRow& a, const PolicyRow& b) {
            return a.number != b.number ? a.number < b.number : a.threshold < b.threshold;
        };
        const auto place = std::upper_bound(rows_.begin(), rows_.end(), row, before);
        const int number = static_cast<int>(place - rows_.begin());
        beginInsertRows({}, number, number);
        rows_.insert(place, std::move(row));
        endInsertRows();
    }
}

void PolicyTableModel::setColours(std::function<QColor(std::size_t)> colours) {
    colours_ = std::move(colours);
    if (rowCount() > 0) {
        Q_EMIT dataChanged(index(0, policy), index(rowCount() - 1, policy), {Qt::DecorationRole});
    }
}

int PolicyTableModel::rowOf(const QString& spec) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(),
                                    [&](const PolicyRow& row) { return row.spec == spec.toStdString(); });
    return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

int PolicyTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int PolicyTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : column_count;
}

QVariant PolicyTableModel::value(const PolicyRow& row, int column) const {
    const PolicyOutcome* outcome = outcome_of(row, column);
    double number = std::nan("");
    switch (column) {
    case policy:
        return QString::fromStdString(kind_of(row).name);
    case rule:
        return rule_in_words(kind_of(row), row.threshold);
    case threshold:
        number = row.threshold;
        break;
    case steps:
    case steps_rerun:
        number = outcome != nullptr ? outcome->steps : number;
        break;
    case difference:
    case difference_rerun:
    case blind:
        number = outcome != nullptr ? difference_in(*outcome, column).value : number;
        break;
    default:
        number = outcome != nullptr ? outcome->saved : number;
    }
    return number; // NaN: none
}

QString PolicyTableModel::text(const PolicyRow& row, int column) const {
    const QVariant what = value(row, column);
    if (column == policy) {
        return what.toString() + (row.causal ? QString() : tr(" (a bound)"));
    }
    if (column == rule) {
        return what.toString();
    }
    if (!std::isfinite(what.toDouble())) {
        return of_rerun(column) && !row.rerun ? QString() : QString::fromUtf16(no_value);
    }
    switch (column) {
    case threshold:
        return QString::number(what.toDouble(), 'g', 4);
    case steps:
    case steps_rerun:
        return format_nats(what.toDouble());
    case difference:
    case difference_rerun:
    case blind:
        return with_interval(difference_in(*outcome_of(row, column), column), true) +
               (column == blind && row.replayed.thinks_better() ? QStringLiteral(" *") : QString());
    default:
        return tr("%1 %").arg(format_nats(100 * what.toDouble(), 1));
    }
}

QString PolicyTableModel::tip(const PolicyRow& row, int column) const {
    const PolicyOutcome* outcome = outcome_of(row, column);
    if (column == policy || column == threshold || column == rule) {
        QString words = QString::fromStdString(row.spec) + u'\n' + rule_in_words(kind_of(row), row.threshold);
        if (!kind_of(row).source.empty()) {
            words += QStringLiteral("\n%1").arg(QString::fromStdString(kind_of(row).source));
        }
        return plain_tip(words);
    }
    if (outcome == nullptr && !row.fault.empty()) {
        return plain_tip(QString::fromStdString(row.fault));
    }
    if (outcome == nullptr) {
        return row.causal ? tr("Not rerun yet: choose the row and press Rerun")
                          : tr("This rule looks at the next token: no model can run it");
    }
    QString words = tr("steps %1 · NLL %2 · perplexity %3")
                        .arg(format_nats(outcome->steps), format_nats(outcome->nll, 3),
                             format_nats(std::exp(outcome->nll)));
    if (std::isfinite(outcome->flops)) {
        words += tr(" · FLOPs %1").arg(format_si(outcome->flops));
    }
    if (is_difference(column)) {
        const Estimate& shown = difference_in(*outcome, column);
        words += std::isfinite(shown.low)
                     ? tr("\n95 % interval %1 to %2: paired bootstrap over the same tokens")
                           .arg(format_difference(shown.low, 4), format_difference(shown.high, 4))
                 : column == difference_rerun
                     ? tr("\nRerun full, too: the run halted, so it says nothing of all steps")
                     : QString();
    } else if (column == saved_rerun && std::isfinite(outcome->flops) && !std::isfinite(outcome->saved)) {
        words += tr("\nRerun full, too: the run halted, so it says nothing of all steps");
    }
    return plain_tip(words);
}

QVariant PolicyTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount() || index.column() >= column_count) {
        return {};
    }
    const PolicyRow& row = rows_[static_cast<std::size_t>(index.row())];
    const int column = index.column();
    switch (role) {
    case Qt::DisplayRole:
        return text(row, column);
    case Qt::UserRole:
        return value(row, column);
    case interval_role:
        if (is_difference(column)) {
            const PolicyOutcome* outcome = outcome_of(row, column);
            if (outcome == nullptr) {
                return QVariantList{std::nan(""), std::nan("")};
            }
            const Estimate& shown = difference_in(*outcome, column);
            return QVariantList{shown.low, shown.high};
        }
        return {};
    case Qt::TextAlignmentRole:
        return headerData(column, Qt::Horizontal, role);
    case Qt::DecorationRole:
        return column == policy && colours_ ? QVariant(colours_(row.number)) : QVariant();
    case Qt::ToolTipRole:
        return tip(row, column);
    default:
        return {};
    }
}

QVariant PolicyTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= column_count) {
        return {};
    }
    switch (role) {
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(Qt::Alignment(
            (section == policy || section == rule ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
    case Qt::DisplayRole: {
        const QString names[] = {tr("Policy"),
                                 tr("Threshold"),
                                 tr("Steps\nreplay"),
                                 tr("Steps\nrerun"),
                                 tr("Δ NLL\nreplay"),
                                 tr("Δ NLL\nrerun"),
                                 tr("Δ NLL blind\nreplay"),
                                 tr("FLOPs saved\nreplay"),
                                 tr("FLOPs saved\nrerun"),
                                 tr("Rule")};
        return names[section];
    }
    case Qt::ToolTipRole:
        if (section == blind) {
            return tr(
                "Mean NLL minus that of the best blind rule at the same FLOPs (steps where they are not "
                "known), in nats. Blind: one depth for all tokens, or one of two depths drawn for each. "
                "* : thinks better, the interval lies below 0");
        }
        if (is_difference(section)) {
            return tr(
                "Mean NLL minus that of full, where every step runs, in nats; replays against its replay, "
                "reruns against its rerun");
        }
        if (section == saved || section == saved_rerun) {
            return tr("Share of the FLOPs of full that is not spent");
        }
        return section == threshold ? tr("What the rule compares with; its unit stands in the rule")
                                    : QVariant();
    default:
        return {};
    }
}

} // namespace ponderscope
