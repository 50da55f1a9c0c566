// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/token_model.h"

#include "views/common/format.h"

#include <QColor>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int quantity_count = static_cast<int>(std::size(token_quantities));

bool same_annotations(const SequenceData& a, const SequenceData& b) {
    return std::equal(a.annotations.begin(), a.annotations.end(), b.annotations.begin(), b.annotations.end(),
                      [](const TokenAnnotation& x, const TokenAnnotation& y) { return x.name == y.name; });
}

} // namespace

TokenModel::TokenModel(const ViewContext& context, QObject* parent)
    : QAbstractTableModel(parent), context_(context) {}

void TokenModel::show(std::shared_ptr<const SequenceData> block, std::shared_ptr<const SequenceData> other,
                      const TokenValues* values) {
    values_ = values;
    const auto both = block && other ? std::min(block->tokens.size(), other->tokens.size()) : 0;
    if (both == 0 ||
        !std::equal(block->tokens.id.begin(), block->tokens.id.begin() + static_cast<std::ptrdiff_t>(both),
                    other->tokens.id.begin())) {
        other = nullptr; // of other tokens there is nothing to stand beside
    }
    const bool same_other = other && other_ ? other->run == other_->run : !other && !other_;
    const bool grows = block_ && block && block->run == block_->run && block->sequence == block_->sequence &&
                       block->tokens.size() >= block_->tokens.size() && same_annotations(*block, *block_) &&
                       same_other;
    if (grows) {
        const int before = rowCount();
        const int now =
            static_cast<int>(std::min<std::size_t>(block->tokens.size(), std::numeric_limits<int>::max()));
        other_ = std::move(other);
        if (now > before) {
            beginInsertRows({}, before, now - 1);
            for (auto token = static_cast<std::uint32_t>(order_.size());
                 sorted_ >= 0 && token < static_cast<std::uint32_t>(now); ++token) {
                order_.push_back(token); // new tokens stay last until the next sort
                rows_.push_back(token);
            }
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
    other_ = std::move(other);
    reorder();
    endResetModel();
}

qint64 TokenModel::tokenOf(int row) const {
    if (row < 0 || row >= rowCount()) {
        return -1;
    }
    return order_.empty() ? row : static_cast<qint64>(order_[static_cast<std::size_t>(row)]);
}

int TokenModel::rowOf(qint64 token) const {
    if (token < 0 || token >= rowCount()) {
        return -1;
    }
    return static_cast<int>(rows_.empty() ? token
                                          : static_cast<qint64>(rows_[static_cast<std::size_t>(token)]));
}

void TokenModel::sort(int column, Qt::SortOrder order) {
    Q_EMIT layoutAboutToBeChanged();
    const QModelIndexList before = persistentIndexList();
    std::vector<qint64> tokens;
    for (const QModelIndex& one : before) {
        tokens.push_back(tokenOf(one.row()));
    }
    sorted_ = column;
    way_ = order;
    reorder();
    for (qsizetype i = 0; i < before.size(); ++i) {
        changePersistentIndex(before[i],
                              index(rowOf(tokens[static_cast<std::size_t>(i)]), before[i].column()));
    }
    Q_EMIT layoutChanged();
}

void TokenModel::reorder() {
    order_.clear();
    rows_.clear();
    const auto count = static_cast<std::size_t>(rowCount());
    const bool natural =
        sorted_ < 0 || sorted_ >= columnCount() || (sorted_ == place_column && way_ == Qt::AscendingOrder);
    if (natural || count == 0) {
        return;
    }
    order_.resize(count);
    rows_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        order_[i] = static_cast<std::uint32_t>(i);
    }
    const bool up = way_ == Qt::AscendingOrder;
    if (sorted_ == token_column) {
        const auto text = [&](std::uint32_t token) {
            return token_bytes(block_->tokens, block_->text, token);
        };
        std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
            return up ? text(a) < text(b) : text(b) < text(a);
        });
    } else {
        std::vector<double> values(count);
        for (std::size_t i = 0; i < count; ++i) {
            const double value = valueAt(sorted_, i);
            values[i] = std::isnan(value) ? std::numeric_limits<double>::infinity() : up ? value : -value;
        }
        std::stable_sort(order_.begin(), order_.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return values[a] < values[b]; });
    }
    for (std::size_t row = 0; row < count; ++row) {
        rows_[order_[row]] = static_cast<std::uint32_t>(row);
    }
}

std::pair<const SequenceData*, Quantity> TokenModel::quantityAt(int column) const {
    const int at = column - first_quantity;
    if (at < 0 || at >= (other_ ? 2 : 1) * quantity_count) {
        return {nullptr, Quantity::nll};
    }
    return {at < quantity_count ? block_.get() : other_.get(),
            token_quantities[at % quantity_count].quantity};
}

double TokenModel::valueAt(int column, std::size_t token) const {
    if (column == place_column) {
        return static_cast<double>(token);
    }
    if (const TokenAnnotation* own = annotation(column)) {
        return token < own->values.size() ? own->values[token] : std::nan("");
    }
    const auto [run, quantity] = quantityAt(column);
    const qint64 row = context_.selection.rowOf(static_cast<qint64>(token));
    return run == nullptr || row < 0 ? std::nan("")
                                     : quantity_of(quantity, run->tokens, static_cast<std::size_t>(row));
}

void TokenModel::recolour() {
    if (rowCount() > 0) {
        Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
        Q_EMIT headerDataChanged(Qt::Horizontal, 0, columnCount() - 1);
    }
}

int TokenModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() || !block_ ? 0
                                       : static_cast<int>(std::min<std::size_t>(
                                             block_->tokens.size(), std::numeric_limits<int>::max()));
}

int TokenModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0
                            : first_quantity + (other_ ? 2 : 1) * quantity_count +
                                  (block_ ? static_cast<int>(block_->annotations.size()) : 0);
}

const TokenAnnotation* TokenModel::annotation(int column) const {
    const int at = column - first_quantity - (other_ ? 2 : 1) * quantity_count;
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
    const auto token = static_cast<std::size_t>(tokenOf(index.row()));
    const TokenColumns& tokens = block_->tokens;
    if (role == Qt::TextAlignmentRole) {
        return static_cast<int>((index.column() == token_column ? Qt::AlignLeft : Qt::AlignRight) |
                                Qt::AlignVCenter);
    }
    if (index.column() == place_column) {
        return role == Qt::DisplayRole ? QVariant(format_count(static_cast<qint64>(token))) : QVariant();
    }
    if (index.column() == token_column) {
        if (role == Qt::BackgroundRole) {
            return colour(token);
        }
        const std::string_view bytes = token_bytes(tokens, block_->text, token);
        if (role == Qt::DisplayRole || role == Qt::AccessibleTextRole) {
            return bytes.empty() ? u"‹id %1›"_s.arg(tokens.id[token])
                                 : visible_token_of(tokens, block_->text, token, 60);
        }
        return role == Qt::ToolTipRole ? QVariant(u"token id %1"_s.arg(tokens.id[token])) : QVariant();
    }
    if (const TokenAnnotation* own = annotation(index.column())) {
        return role == Qt::DisplayRole ? QVariant(format_annotation(*own, token)) : QVariant();
    }
    if (role == Qt::DisplayRole) {
        return format_quantity(quantityAt(index.column()).second, valueAt(index.column(), token));
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
        return role == Qt::DisplayRole ? QVariant(u"Position"_s) : QVariant();
    }
    if (section == token_column) {
        return role == Qt::DisplayRole ? QVariant(u"Token"_s) : QVariant();
    }
    if (const TokenAnnotation* own = annotation(section)) {
        return role == Qt::DisplayRole   ? QVariant(own->name)
               : role == Qt::ToolTipRole ? QVariant(u"An annotation of the tokens"_s)
                                         : QVariant();
    }
    const Quantity quantity = quantityAt(section).second;
    const QString name = quantity_name(quantity);
    const bool of_a = section < first_quantity + quantity_count;
    return role == Qt::DisplayRole   ? QVariant(of_a ? name : u"%1 of B"_s.arg(name))
           : role == Qt::ToolTipRole ? QVariant(quantity_meaning(quantity, context_.selection.attribution()))
                                     : QVariant();
}

} // namespace ponderscope
