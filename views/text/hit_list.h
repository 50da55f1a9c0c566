// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QAbstractListModel>

#include <memory>
#include <vector>

namespace ponderscope {

/// The hits of a search with the words around them.
class HitModel : public QAbstractListModel {
    Q_OBJECT
public:
    enum Role { TokenRole = Qt::UserRole };
    explicit HitModel(const ViewContext& context, QObject* parent = nullptr)
        : QAbstractListModel(parent), context_(context) {}

    /// \p hits: ascending tokens of \p block.
    void show(std::shared_ptr<const SequenceData> block, std::vector<qint64> hits);
    [[nodiscard]] QModelIndex indexOf(qint64 token) const; ///< invalid: not a hit

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

private:
    ViewContext context_;
    std::shared_ptr<const SequenceData> block_;
    std::vector<qint64> hits_;
};

} // namespace ponderscope
