// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/compare/run_comparison.h"

#include <QAbstractTableModel>
#include <QColor>

#include <functional>
#include <memory>
#include <vector>

namespace ponderscope {

/// The runs of a comparison as rows: name, tokens, NLL with its interval, paired difference to the first run,
/// perplexity, bits per byte, mean steps and FLOPs. Numbers are right-aligned texts; sorting is by value
/// (Qt::UserRole).
class RunsTableModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { name, tokens, nll, difference, perplexity, bits_per_byte, steps, flops, column_count };

    explicit RunsTableModel(QObject* parent = nullptr);

    /// \p keys: of the comparison's runs, in their order. Null: no rows.
    void setComparison(std::shared_ptr<const RunComparison> comparison, std::vector<RunKey> keys);
    /// The colour of a run's dot (Qt::DecorationRole of the first column).
    void setColours(std::function<QColor(const RunKey&)> colours);
    void coloursChanged();
    [[nodiscard]] RunKey key(int row) const;

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] QString text(const RunComparison::Run& run, int column) const;
    [[nodiscard]] double value(const RunComparison::Run& run, int column) const;

    std::shared_ptr<const RunComparison> comparison_;
    std::vector<RunKey> keys_;
    std::function<QColor(const RunKey&)> colours_;
};

} // namespace ponderscope
