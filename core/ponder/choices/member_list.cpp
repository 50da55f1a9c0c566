// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/choices/member_list.h"

#include "core/base/error.h"
#include "core/base/words.h"

#include <numeric>
#include <set>

namespace ponderscope {

namespace {} // namespace

std::vector<std::int64_t> parse_members(std::string_view text, const MemberRange& range) {
    if (text == "all") {
        std::vector<std::int64_t> all(static_cast<std::size_t>(range.end - range.begin));
        std::iota(all.begin(), all.end(), range.begin);
        return all;
    }
    std::set<std::int64_t> chosen;
    while (true) {
        const std::string_view entry = text.substr(0, text.find(','));
        const std::size_t dash = entry.find('-');
        const std::int64_t first = parse_count(entry.substr(0, dash));
        const std::int64_t last =
            dash == std::string_view::npos ? first : parse_count(entry.substr(dash + 1));
        if (first < 0 || last < first) {
            throw InputError(range.option + ": expected " + range.what +
                             " as all, numbers and ranges from 0, as in 0,3-5, found '" + std::string(entry) +
                             "'; write " + range.usage + ".");
        }
        if (first < range.begin || last >= range.end) {
            throw InputError(range.option + ": expected " + range.what + " from " +
                             std::to_string(range.begin) + " to " + std::to_string(range.end - 1) +
                             (range.begin == 0 ? ", which this model has" : ", which this model runs again") +
                             ", found " + std::string(entry) + ".");
        }
        for (std::int64_t one = first; one <= last; ++one) {
            chosen.insert(one);
        }
        if (entry.size() == text.size()) {
            return {chosen.begin(), chosen.end()};
        }
        text.remove_prefix(entry.size() + 1);
    }
}

std::string members_in_words(const std::vector<std::int64_t>& members) {
    std::string text;
    for (std::size_t i = 0; i < members.size();) {
        std::size_t end = i + 1;
        while (end < members.size() && members[end] == members[end - 1] + 1) {
            ++end;
        }
        text += text.empty() ? "" : ", ";
        text += std::to_string(members[i]);
        if (end - i > 1) {
            text += '-';
            text += std::to_string(members[end - 1]);
        }
        i = end;
    }
    return text;
}

} // namespace ponderscope
