// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/text/quantity.h"

#include <QAbstractTableModel>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ponderscope {

/// The tokens of the shown sequence, one a row: position, token, every quantity of A, the quantities of B if
/// it has the same tokens, and every annotation; what the text is coloured by colours the token. Reads the
/// blocks as it is asked; nothing is copied. Sorting orders row numbers, in the order of the text while
/// nobody sorted.
class TokenModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { place_column, token_column, first_quantity };
    explicit TokenModel(const ViewContext& context, QObject* parent = nullptr);

    /// \p other: that of run B, or null. \p values: the text's own, which outlive the model; null: no
    /// colours.
    void show(std::shared_ptr<const SequenceData> block, std::shared_ptr<const SequenceData> other,
              const TokenValues* values);
    /// The token of a row, and the row of a token; -1: none.
    [[nodiscard]] qint64 tokenOf(int row) const;
    [[nodiscard]] int rowOf(qint64 token) const;
    /// Rows without a value are last in both orders. An invalid column gives the order of the text.
    void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override;
    /// Colours or attribution changed.
    void recolour();

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] QVariant colour(std::size_t token) const;
    /// The annotation of a column behind the quantities; null: the column is no annotation.
    [[nodiscard]] const TokenAnnotation* annotation(int column) const;
    /// The run and the quantity of a column; null: it is of neither.
    [[nodiscard]] std::pair<const SequenceData*, Quantity> quantityAt(int column) const;
    [[nodiscard]] double valueAt(int column, std::size_t token) const; ///< NaN: none
    void reorder();

    ViewContext context_;
    std::shared_ptr<const SequenceData> block_;
    std::shared_ptr<const SequenceData> other_;
    std::vector<std::uint32_t> order_; ///< tokens by row; empty: as they stand in the text
    std::vector<std::uint32_t> rows_;  ///< rows by token
    int sorted_ = -1;
    Qt::SortOrder way_ = Qt::AscendingOrder;
    const TokenValues* values_ = nullptr;
};

} // namespace ponderscope
