// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// What a list on a command line may name: some of \p begin to \p end - 1.
struct MemberRange {
    std::string option; ///< "--attention"
    std::string what;   ///< "layers"
    std::string usage;  ///< "LAYERS or LAYERS:HEADS"
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

/// `all`, or numbers and ranges as in 0,3-5; ascending, each once. InputError: anything else, a number that
/// is not in the range.
std::vector<std::int64_t> parse_members(std::string_view text, const MemberRange& range);

/// "0, 3-5".
std::string members_in_words(const std::vector<std::int64_t>& members);

} // namespace ponderscope
