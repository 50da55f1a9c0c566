// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
#include "core/text/text_reading.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// Notices about recorded texts: byte order marks, repeated start tokens, texts cut into several sequences.
class TextNotices {
public:
    void look_at(std::string_view text, const Tokenizer& tokenizer, const TextReading& reading);
    /// Adds a text that became several sequences.
    void add_cut_text(const Tokenizer& tokenizer, const TextReading& reading);
    [[nodiscard]] Notices all() const;

private:
    std::string start_; ///< text of the start token, for the notices
    std::int64_t marked_ = 0, doubled_ = 0, cut_ = 0;
};

} // namespace ponderscope
