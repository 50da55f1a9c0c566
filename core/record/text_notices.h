// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/text/text_reading.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// Notices about the recorded texts: marks of editors, start tokens twice or missing.
class TextNotices {
public:
    void look_at(std::string_view text, const Tokenizer& tokenizer, const TextReading& reading);
    /// A text of more than one sequence.
    void add_cut_text(const Tokenizer& tokenizer, const TextReading& reading);
    [[nodiscard]] std::vector<std::string> sentences() const;

private:
    std::string start_; ///< the start token, once one was met
    std::int64_t marked_ = 0, doubled_ = 0, cut_ = 0;
};

} // namespace ponderscope
