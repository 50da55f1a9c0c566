// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/policy/policy_rows.h"

#include <QAbstractTableModel>
#include <QColor>

#include <functional>
#include <vector>

namespace ponderscope {

/// Policies as rows: replay and rerun of each quantity beside each other. Cells of reruns are empty until
/// there is one. Texts as on the screen; values and intervals in the roles of views/common/tables.h.
class PolicyTableModel : public QAbstractTableModel {
public:
    enum Column {
        policy,
        threshold,
        steps,
        steps_rerun,
        difference,
        difference_rerun,
        blind, ///< to the best blind rule at the same cost
        saved,
        saved_rerun,
        rule,
        column_count
    };
    using QAbstractTableModel::QAbstractTableModel;

    /// Rows that were there keep their place; \p rows of a policy that was there replace it.
    void setRows(std::vector<PolicyRow> rows);
    /// By the number of the kind.
    void setColours(std::function<QColor(std::size_t)> colours);
    [[nodiscard]] const std::vector<PolicyRow>& rows() const { return rows_; }
    [[nodiscard]] int rowOf(const QString& spec) const; ///< -1: it is not there

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    static QString tr(const char* text); // figures have it without moc
    [[nodiscard]] QString text(const PolicyRow& row, int column) const;
    [[nodiscard]] QVariant value(const PolicyRow& row, int column) const;
    [[nodiscard]] QString tip(const PolicyRow& row, int column) const;

    std::vector<PolicyRow> rows_;
    std::function<QColor(std::size_t)> colours_;
};

} // namespace ponderscope
