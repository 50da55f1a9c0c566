// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/policy_table_model.h"

#include "views/common/format.h"
#include "views/common/tables.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

bool of_rerun(int column) {
    return column == PolicyTableModel::steps_rerun || column == PolicyTableModel::difference_rerun ||
           column == PolicyTableModel::saved_rerun;
}

/// What a column of differences shows; null: another column.
const Estimate* difference_in(const PolicyOutcome& outcome, int column) {
    const bool of_full =
        column == PolicyTableModel::difference || column == PolicyTableModel::difference_rerun;
    return of_full                             ? &outcome.difference
           : column == PolicyTableModel::blind ? &outcome.against_blind
                                               : nullptr;
}

/// What a column is about; null: there is no rerun.
const PolicyOutcome* outcome_of(const PolicyRow& row, int column) {
    return !of_rerun(column) ? &row.replayed : row.rerun ? &*row.rerun : nullptr;
}

const PolicyKind& kind_of(const PolicyRow& row) {
    return *PolicySpec::parse(row.spec).kind;
}

} // namespace

PolicyTableModel::PolicyTableModel(QObject* parent) : DataTableModel(parent) {
    setTable(table_of(rows_));
    setTips([this](int row, int column) { return tip(rows_[static_cast<std::size_t>(row)], column); });
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
            edit().rows.erase(edit().rows.begin() + at);
            endRemoveRows();
        }
    }
    for (PolicyRow& row : rows) {
        const int at = rowOf(QString::fromStdString(row.spec));
        if (at >= 0) {
            edit().rows[static_cast<std::size_t>(at)] = table_of(std::span(&row, 1)).rows.front();
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
        edit().rows.insert(edit().rows.begin() + number, table_of(std::span(&row, 1)).rows.front());
        rows_.insert(place, std::move(row));
        endInsertRows();
    }
}

int PolicyTableModel::rowOf(const QString& spec) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(),
                                    [&](const PolicyRow& row) { return row.spec == spec.toStdString(); });
    return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

QString PolicyTableModel::tip(const PolicyRow& row, int column) const {
    const PolicyOutcome* outcome = outcome_of(row, column);
    if (column == policy || column == threshold || column == rule) {
        QString words = QString::fromStdString(row.spec + '\n' + rule_in_words(kind_of(row), row.threshold));
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
    if (const Estimate* shown = difference_in(*outcome, column)) {
        words += std::isfinite(shown->low)
                     ? tr("\n95 % interval %1 to %2: paired bootstrap over the same tokens")
                           .arg(format_difference(shown->low, 4), format_difference(shown->high, 4))
                 : column == difference_rerun
                     ? tr("\nRerun full, too: the run halted, so it says nothing of all steps")
                     : QString();
    } else if (column == saved_rerun && std::isfinite(outcome->flops) && !std::isfinite(outcome->saved)) {
        words += tr("\nRerun full, too: the run halted, so it says nothing of all steps");
    }
    return plain_tip(words);
}

} // namespace ponderscope
