// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy_rows.h"
#include "views/common/data_table_model.h"

#include <vector>

namespace ponderscope {

/// Policies as rows: replay and rerun of each quantity beside each other.
class PolicyTableModel : public DataTableModel {
    Q_OBJECT
public:
    enum Column {
        policy,
        threshold,
        steps,
        steps_rerun,
        difference,
        difference_rerun,
        blind, ///< to the best blind rule at the same cost
        better,
        saved,
        saved_rerun,
        rule,
        column_count
    };
    explicit PolicyTableModel(QObject* parent = nullptr);

    /// Rows that were there keep their place; \p rows of a policy that was there replace it.
    void setRows(std::vector<PolicyRow> rows);
    [[nodiscard]] const std::vector<PolicyRow>& rows() const { return rows_; }
    [[nodiscard]] int rowOf(const QString& spec) const; ///< -1: it is not there

private:
    [[nodiscard]] QString tip(const PolicyRow& row, int column) const;

    std::vector<PolicyRow> rows_;
};

} // namespace ponderscope
