// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/text_notices.h"

#include "core/base/utf8.h"

namespace ponderscope {
namespace {

/// "1 text begins", "3 texts begin".
std::string texts_begin(std::int64_t count) {
    return std::to_string(count) + (count == 1 ? " text begins" : " texts begin");
}

} // namespace

void TextNotices::look_at(std::string_view text, const Tokenizer& tokenizer, const TextReading& reading) {
    marked_ += text.starts_with("\xEF\xBB\xBF");
    if (const auto start = tokenizer.start_token(); reading.adds() && reading.parse_special && start) {
        start_ = tokenizer.token_text(*start);
        doubled_ += !start_.empty() && text.starts_with(start_);
    }
}

void TextNotices::add_cut_text(const Tokenizer& tokenizer, const TextReading& reading) {
    if (const auto start = tokenizer.start_token();
        reading.adds() && reading.bos != TextReading::Bos::every_window && start) {
        start_ = tokenizer.token_text(*start);
        ++cut_;
    }
}

std::vector<std::string> TextNotices::sentences() const {
    std::vector<std::string> said;
    if (marked_ > 0) {
        said.push_back(texts_begin(marked_) +
                       " with a byte-order mark (U+FEFF), which is recorded as text: save without it.");
    }
    if (doubled_ > 0) {
        said.push_back(
            texts_begin(doubled_) + " with the start token " + printable(start_) +
            ", which the tokenizer adds as well, so that it stands there twice: take it out, or give "
            "--bos never.");
    }
    if (cut_ > 0) {
        said.push_back("A long text makes several sequences, and only the first has the start token " +
                       printable(start_) + '.');
    }
    return said;
}

} // namespace ponderscope
