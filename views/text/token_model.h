// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/text/quantity.h"

#include <QAbstractTableModel>

#include <memory>

namespace ponderscope {

/// The tokens of the shown sequence, one a row: place, token, every quantity, and every annotation; what the
/// text is coloured by colours the token. Reads the block as it is asked; nothing is copied, so a million
/// rows cost nothing.
class TokenModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { place_column, token_column, first_quantity };
    explicit TokenModel(const ViewContext& context, QObject* parent = nullptr);

    /// \p values: the text's own, which outlive the model; null: no colours.
    void show(std::shared_ptr<const SequenceData> block, const TokenValues* values);
    /// Colours or attribution changed.
    void recolour();

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] QVariant colour(std::size_t token) const;
    /// Of a column behind the quantities; null: it is none of these.
    [[nodiscard]] const TokenAnnotation* annotation(int column) const;

    ViewContext context_;
    std::shared_ptr<const SequenceData> block_;
    const TokenValues* values_ = nullptr;
};

} // namespace ponderscope
