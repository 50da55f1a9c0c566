// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/text_reading.h"

#include "core/base/error.h"

#include <algorithm>
#include <iterator>

namespace ponderscope {
namespace {

constexpr const char* bos_names[] = {"auto", "always", "never", "every-window"};

} // namespace

TextReading::Bos TextReading::parse_bos(const std::string& text) {
    const auto* const found = std::find(std::begin(bos_names), std::end(bos_names), text);
    if (found == std::end(bos_names)) {
        throw InputError(ErrorId::usage_value,
                         "--bos: expected auto, always, never or every-window, found '" + text + "'.");
    }
    return static_cast<Bos>(found - std::begin(bos_names));
}

std::string TextReading::bos_text() const {
    return bos_names[static_cast<std::size_t>(bos)];
}

Encoding TextReading::encode(const Tokenizer& tokenizer, std::string_view text) const {
    Encoding encoding = tokenizer.encode(text, adds(), parse_special);
    if (bos == Bos::always || bos == Bos::every_window) {
        const std::int32_t start = require_start_token(tokenizer);
        if (encoding.ids.empty() || encoding.ids.front() != start) {
            encoding.ids.insert(encoding.ids.begin(), start);
            encoding.begin.insert(encoding.begin.begin(), 0);
            encoding.end.insert(encoding.end.begin(), 0);
        }
    }
    return encoding;
}

std::int32_t require_start_token(const Tokenizer& tokenizer) {
    const auto start = tokenizer.start_token() ? tokenizer.start_token() : tokenizer.bos_token();
    if (!start) {
        throw InputError(ErrorId::text_tokenizer, tokenizer.files().front(), "a start token (bos_token)",
                         "none", "use --bos auto or --bos never");
    }
    return *start;
}

} // namespace ponderscope
