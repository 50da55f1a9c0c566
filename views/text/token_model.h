// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/text/quantity.h"

#include <QAbstractTableModel>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ponderscope {

/// The tokens of the shown sequence, one in each row: position, token, every quantity of A, every quantity of
/// B if B has the same tokens, and every annotation. The token's cell has the text's colour. Reads the blocks
/// on request and copies nothing. Unsorted rows are in the order of the text.
class TokenModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum { place_column, token_column, first_quantity }; ///< columns
    explicit TokenModel(const ViewContext& context, QObject* parent = nullptr);

    /// \p other: run B's block, or null. \p values: for the colours, or null; must outlive the model.
    void show(std::shared_ptr<const SequenceData> block, std::shared_ptr<const SequenceData> other,
              const TokenValues* values);
    /// The token of a row, and the row of a token; -1: none.
    [[nodiscard]] qint64 tokenOf(int row) const;
    [[nodiscard]] int rowOf(qint64 token) const;
    /// Rows without a value come last, also in descending order. An invalid column restores the order of the
    /// text.
    void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override;

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override {
        return parent.isValid() ? 0 : static_cast<int>(columns_.size());
    }
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] QVariant colour(std::size_t token) const;
    struct Column {
        QString title;
        QString tip;
        std::function<double(std::size_t token)> value; ///< to sort by; NaN: no value
        std::function<QString(std::size_t token)> text;
    };
    [[nodiscard]] std::vector<Column> columns() const;
    void reorder();

    ViewContext context_;
    std::shared_ptr<const SequenceData> block_;
    std::shared_ptr<const SequenceData> other_;
    std::vector<Column> columns_;
    std::vector<std::uint32_t> order_; ///< token of each row; empty: in the order of the text
    std::vector<std::uint32_t> rows_;  ///< row of each token
    int sorted_ = -1;
    Qt::SortOrder way_ = Qt::AscendingOrder;
    const TokenValues* values_ = nullptr;
};

} // namespace ponderscope
