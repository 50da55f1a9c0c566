// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/token_model.h"

#include "views/common/format.h"
#include "views/common/whole_characters.h"

#include <QColor>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace ponderscope {
namespace {

constexpr int quantity_count = static_cast<int>(std::size(all_quantities));

bool same_annotations(const SequenceData& a, const SequenceData& b) {
    return std::equal(a.annotations.begin(), a.annotations.end(), b.annotations.begin(), b.annotations.end(),
                      [](const TokenAnnotation& x, const TokenAnnotation& y) { return x.name == y.name; });
}

} // namespace

TokenModel::TokenModel(const ViewContext& context, QObject* parent)
    : QAbstractTableModel(parent), context_(context) {}

void TokenModel::show(std::shared_ptr<const SequenceData> block, const TokenValues* values) {
    values_ = values;
    const bool grows = block_ && block && block->run == block_->run && block->sequence == block_->sequence &&
                       block->tokens.size() >= block_->tokens.size() && same_annotations(*block, *block_);
    if (grows) {
        const int before = rowCount();
        const int now =
            static_cast<int>(std::min<std::size_t>(block->tokens.size(), std::numeric_limits<int>::max()));
        if (now > before) {
            beginInsertRows({}, before, now - 1);
        }
        block_ = std::move(block);
        if (now > before) {
            endInsertRows();
        }
        recolour();
        return;
    }
    beginResetModel();
    block_ = std::move(block);
    endResetModel();
}

void TokenModel::recolour() {
    if (rowCount() > 0) {
        emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
        emit headerDataChanged(Qt::Horizontal, 0, columnCount() - 1);
    }
}

int TokenModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() || !block_ ? 0
                                       : static_cast<int>(std::min<std::size_t>(
                                             block_->tokens.size(), std::numeric_limits<int>::max()));
}

int TokenModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0
                            : first_quantity + quantity_count +
                                  (block_ ? static_cast<int>(block_->annotations.size()) : 0);
}

const TokenAnnotation* TokenModel::annotation(int column) const {
    const int at = column - first_quantity - quantity_count;
    return at < 0 || !block_ ? nullptr : &block_->annotations.at(static_cast<std::size_t>(at));
}

QVariant TokenModel::colour(std::size_t token) const {
    if (values_ == nullptr || token >= values_->values.size()) {
        return {};
    }
    const double position = values_->scale.position(values_->values[token]);
    const ColourMap& map = map_of(*values_, context_.theme);
    return std::isnan(position) ? QVariant() : QVariant(QColor(map.at(position)));
}

QVariant TokenModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || !block_ || index.row() >= rowCount()) {
        return {};
    }
    const auto token = static_cast<std::size_t>(index.row());
    const TokenColumns& tokens = block_->tokens;
    if (role == Qt::TextAlignmentRole) {
        return static_cast<int>((index.column() == token_column ? Qt::AlignLeft : Qt::AlignRight) |
                                Qt::AlignVCenter);
    }
    if (index.column() == place_column) {
        return role == Qt::DisplayRole ? QVariant(format_count(index.row())) : QVariant();
    }
    if (index.column() == token_column) {
        if (role == Qt::BackgroundRole) {
            return colour(token);
        }
        const std::string_view bytes = token_bytes(tokens, block_->text, token);
        if (role == Qt::DisplayRole || role == Qt::AccessibleTextRole) {
            return bytes.empty() ? tr("‹id %1›").arg(tokens.id[token])
                                 : visible_token_of(tokens, block_->text, token, 60);
        }
        return role == Qt::ToolTipRole ? QVariant(tr("token id %1").arg(tokens.id[token])) : QVariant();
    }
    if (const TokenAnnotation* own = annotation(index.column())) {
        return role == Qt::DisplayRole ? QVariant(format_annotation(*own, token)) : QVariant();
    }
    if (role == Qt::DisplayRole) {
        const Quantity quantity = all_quantities[index.column() - first_quantity];
        const qint64 row = context_.selection.rowOf(index.row());
        return format_quantity(
            quantity, row < 0 ? std::nan("") : quantity_of(quantity, tokens, static_cast<std::size_t>(row)));
    }
    return {};
}

QVariant TokenModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) {
        return {};
    }
    if (role == Qt::TextAlignmentRole) {
        return static_cast<int>((section == token_column ? Qt::AlignLeft : Qt::AlignRight) |
                                Qt::AlignVCenter);
    }
    if (section == place_column) {
        return role == Qt::DisplayRole ? QVariant(tr("Place")) : QVariant();
    }
    if (section == token_column) {
        return role == Qt::DisplayRole ? QVariant(tr("Token")) : QVariant();
    }
    if (const TokenAnnotation* own = annotation(section)) {
        return role == Qt::DisplayRole   ? QVariant(own->name)
               : role == Qt::ToolTipRole ? QVariant(tr("An annotation of the tokens"))
                                         : QVariant();
    }
    const Quantity quantity = all_quantities[section - first_quantity];
    return role == Qt::DisplayRole   ? QVariant(quantity_name(quantity))
           : role == Qt::ToolTipRole ? QVariant(quantity_meaning(quantity, context_.selection.attribution()))
                                     : QVariant();
}

} // namespace ponderscope
