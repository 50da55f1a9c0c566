// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/hit_list.h"

#include "views/common/format.h"
#include "views/text/quantity.h"

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr std::size_t context_bytes = 48;

/// Moves a place in UTF-8 off the middle of a character.
std::size_t on_character(const std::string& text, std::size_t at) {
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
        ++at;
    }
    return at;
}

} // namespace

void HitModel::show(std::shared_ptr<const SequenceData> block, std::vector<qint64> hits) {
    beginResetModel();
    block_ = std::move(block);
    hits_ = std::move(hits);
    endResetModel();
}

QModelIndex HitModel::indexOf(qint64 token) const {
    const auto at = std::lower_bound(hits_.begin(), hits_.end(), token);
    return at != hits_.end() && *at == token ? index(static_cast<int>(at - hits_.begin())) : QModelIndex();
}

int HitModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(hits_.size());
}

QVariant HitModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || !block_ || index.row() >= rowCount()) {
        return {};
    }
    const qint64 token = hits_[static_cast<std::size_t>(index.row())];
    const auto at = static_cast<std::size_t>(token);
    const TokenColumns& tokens = block_->tokens;
    if (role == TokenRole) {
        return token;
    }
    if (at >= tokens.size()) {
        return {};
    }
    const std::string& text = block_->text;
    const std::string_view word = token_bytes(tokens, text, at);
    const auto begin = std::min<std::size_t>(tokens.begin[at], text.size());
    const auto end = std::min<std::size_t>(std::max(tokens.end[at], tokens.begin[at]), text.size());
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole) {
        return {};
    }
    const std::size_t from = on_character(text, begin > context_bytes ? begin - context_bytes : 0);
    const std::size_t to = on_character(text, std::min(end + context_bytes, text.size()));
    const auto between = [&](std::size_t first, std::size_t last) {
        return first < last ? visible_text({text.data() + first, last - first}) : QString();
    };
    const qint64 row = context_.selection.rowOf(token);
    const double nll =
        row < 0 ? std::nan("") : quantity_of(Quantity::nll, tokens, static_cast<std::size_t>(row));
    return u"%1   NLL %2   %3[%4]%5"_s.arg(
        format_count(token), format_quantity(Quantity::nll, nll), between(from, begin),
        word.empty() ? u"‹id %1›"_s.arg(tokens.id[at]) : visible_text(word), between(end, to));
}

} // namespace ponderscope
