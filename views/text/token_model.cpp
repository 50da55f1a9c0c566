// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/token_model.h"

#include "views/common/format.h"

#include <QColor>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

bool same_annotations(const SequenceData& a, const SequenceData& b) {
    return std::equal(a.annotations.begin(), a.annotations.end(), b.annotations.begin(), b.annotations.end(),
                      [](const TokenAnnotation& x, const TokenAnnotation& y) { return x.name == y.name; });
}

} // namespace

TokenModel::TokenModel(const ViewContext& context, QObject* parent)
    : QAbstractTableModel(parent), context_(context), columns_(columns()) {}

std::vector<TokenModel::Column> TokenModel::columns() const {
    const auto token_text = [this](std::size_t token) {
        const TokenColumns& tokens = block_->tokens;
        return token_bytes(tokens, block_->text, token).empty()
                   ? u"‹id %1›"_s.arg(tokens.id[token])
                   : visible_token_of(tokens, block_->text, token, 60);
    };
    std::vector<Column> all{{u"Position"_s,
                             {},
                             [](std::size_t token) { return static_cast<double>(token); },
                             [](std::size_t token) { return format_count(static_cast<qint64>(token)); }},
                            {u"Token"_s, {}, {}, token_text}};
    for (const bool of_b : {false, true}) {
        for (const QuantityInfo& one : token_quantities) {
            if (of_b && !other_) {
                break;
            }
            const auto value = [this, of_b, quantity = one.quantity](std::size_t token) {
                const qint64 row = context_.selection.rowOf(static_cast<qint64>(token));
                return row < 0 ? std::nan("")
                               : quantity_of(quantity, (of_b ? other_ : block_)->tokens,
                                             static_cast<std::size_t>(row));
            };
            const QString name = quantity_name(one.quantity);
            all.push_back({of_b ? u"%1 of B"_s.arg(name) : name,
                           quantity_meaning(one.quantity, context_.selection.attribution()), value,
                           [value, quantity = one.quantity](std::size_t token) {
                               return format_quantity(quantity, value(token));
                           }});
        }
    }
    for (std::size_t i = 0; block_ && i < block_->annotations.size(); ++i) {
        all.push_back(
            {block_->annotations[i].name, u"An annotation of the tokens"_s,
             [this, i](std::size_t token) {
                 const std::vector<double>& values = block_->annotations[i].values;
                 return token < values.size() ? values[token] : std::nan("");
             },
             [this, i](std::size_t token) { return format_annotation(block_->annotations[i], token); }});
    }
    return all;
}

void TokenModel::show(std::shared_ptr<const SequenceData> block, std::shared_ptr<const SequenceData> other,
                      const TokenValues* values) {
    values_ = values;
    const auto both = block && other ? std::min(block->tokens.size(), other->tokens.size()) : 0;
    if (both == 0 ||
        !std::equal(block->tokens.id.begin(), block->tokens.id.begin() + static_cast<std::ptrdiff_t>(both),
                    other->tokens.id.begin())) {
        other = nullptr; // other tokens cannot be compared by row
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
        columns_ = columns(); // tips depend on the attribution
        if (now > 0) {
            Q_EMIT dataChanged(index(0, 0), index(now - 1, columnCount() - 1));
            Q_EMIT headerDataChanged(Qt::Horizontal, 0, columnCount() - 1);
        }
        return;
    }
    beginResetModel();
    block_ = std::move(block);
    other_ = std::move(other);
    columns_ = columns();
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
        std::ranges::stable_sort(order_, [&](std::uint32_t a, std::uint32_t b) {
            return up ? text(a) < text(b) : text(b) < text(a);
        });
    } else {
        std::vector<double> values(count);
        for (std::size_t i = 0; i < count; ++i) {
            const double value = columns_[static_cast<std::size_t>(sorted_)].value(i);
            values[i] = std::isnan(value) ? std::numeric_limits<double>::infinity() : up ? value : -value;
        }
        std::ranges::stable_sort(order_,
                                 [&](std::uint32_t a, std::uint32_t b) { return values[a] < values[b]; });
    }
    for (std::size_t row = 0; row < count; ++row) {
        rows_[order_[row]] = static_cast<std::uint32_t>(row);
    }
}

int TokenModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() || !block_ ? 0
                                       : static_cast<int>(std::min<std::size_t>(
                                             block_->tokens.size(), std::numeric_limits<int>::max()));
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
    const bool of_token = index.column() == token_column;
    switch (role) {
    case Qt::TextAlignmentRole:
        return headerData(index.column(), Qt::Horizontal, role);
    case Qt::DisplayRole:
        return columns_[static_cast<std::size_t>(index.column())].text(token);
    case Qt::BackgroundRole:
        return of_token ? colour(token) : QVariant();
    case Qt::ToolTipRole:
        return of_token ? u"token id %1"_s.arg(block_->tokens.id[token]) : QVariant();
    default:
        return {};
    }
}

QVariant TokenModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) {
        return {};
    }
    const Column& column = columns_[static_cast<std::size_t>(section)];
    switch (role) {
    case Qt::TextAlignmentRole:
        return static_cast<int>((section == token_column ? Qt::AlignLeft : Qt::AlignRight) |
                                Qt::AlignVCenter);
    case Qt::DisplayRole:
        return column.title;
    case Qt::ToolTipRole:
        return column.tip;
    default:
        return {};
    }
}

} // namespace ponderscope
