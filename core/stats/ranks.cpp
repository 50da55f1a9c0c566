// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/ranks.h"

#include <algorithm>
#include <utility>

namespace ponderscope {

void RankTable::merge(RankTable&& other) {
    count_ += other.count_;
    keys_.insert(keys_.end(), other.keys_.begin(), other.keys_.end());
    other.keys_ = {};
    for (std::size_t p = 0; p < pages_.size(); ++p) {
        if (!pages_[p]) {
            pages_[p] = std::move(other.pages_[p]);
        } else if (other.pages_[p]) {
            for (std::size_t b = 0; b < bins; ++b) {
                (*pages_[p])[b] += (*other.pages_[p])[b];
            }
        }
    }
}

void RankTable::finish() {
    std::int64_t before = 0;
    for (const std::unique_ptr<Page>& page : pages_) {
        if (page) {
            for (std::int64_t& place :
                 *page) { // the last, which holds nothing, ends up as the end of the page
                before += std::exchange(place, before);
            }
        }
    }
    std::sort(keys_.begin(), keys_.end());
}

double RankTable::rank_within(std::int64_t begin, std::int64_t end, std::uint64_t key) const {
    const auto [first, last] = std::equal_range(keys_.begin() + begin, keys_.begin() + end, key);
    return (static_cast<double>(first - keys_.begin() + 1) + static_cast<double>(last - keys_.begin())) / 2;
}

RankTable merged(std::vector<RankTable> tables) {
    for (std::size_t i = 1; i < tables.size(); ++i) {
        tables.front().merge(std::move(tables[i]));
    }
    tables.front().finish();
    return std::move(tables.front());
}

std::optional<std::string> rank_notice(std::int64_t tokens) {
    if (tokens <= RankTable::exact_values) {
        return std::nullopt;
    }
    return "Spearman: of more than " + std::to_string(RankTable::exact_values) +
           " tokens, values that differ by less than 1/8192 of themselves share a rank.";
}

} // namespace ponderscope
