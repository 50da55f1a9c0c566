// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/halting/halting_stats.h"

#include <QAbstractTableModel>

#include <memory>

namespace ponderscope {

/// Token types as rows: token, count, mean steps, mean NLL, share that stopped before the last step. Numbers
/// are right-aligned texts; sorting is by value (Qt::UserRole).
class TokenTypesModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { token, count, steps, nll, dropped, column_count };

    using QAbstractTableModel::QAbstractTableModel;
    void setStats(std::shared_ptr<const HaltingStats> stats);
    [[nodiscard]] std::int32_t id(int row) const; ///< -1 outside

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::shared_ptr<const HaltingStats> stats_;
};

} // namespace ponderscope
