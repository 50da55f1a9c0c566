// SPDX-License-Identifier: GPL-3.0-or-later
// TextSource, and notices about texts.
#include "core/base/utf8.h"
#include "core/record/sequence_source.h"

#include <algorithm>
#include <utility>

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

Notices TextNotices::all() const {
    Notices said;
    if (marked_ > 0) {
        said.push_back(
            {NoticeId::text_byte_order_mark,
             texts_begin(marked_) +
                 " with a byte-order mark (U+FEFF), which is recorded as text. Save the file without it."});
    }
    if (doubled_ > 0) {
        said.push_back({NoticeId::text_start_token, texts_begin(doubled_) + " with the start token " +
                                                        printable(start_) +
                                                        ", and the tokenizer adds a second one. Remove the "
                                                        "start token from the text, or give --bos never."});
    }
    if (cut_ > 0) {
        said.push_back(
            {NoticeId::text_cut,
             "A long text was cut into several sequences, and only the first has the start token " +
                 printable(start_) + '.'});
    }
    return said;
}

void TextSource::start(const std::vector<std::filesystem::path>& files, const ProgressSink& progress) {
    const bool stream = std::any_of(files.begin(), files.end(), [](const std::filesystem::path& file) {
        std::error_code error;
        return file == "-" ||
               (std::filesystem::exists(file, error) && !std::filesystem::is_regular_file(file, error));
    });
    rewind();
    if (stream) {
        first_ = read_next();
        if (first_) {
            look_at(*first_);
        }
    } else {
        read_through(progress);
        digest_ = hash_.finish_hex();
        skipped_before_ = skipped();
        rewind();
    }
    if (is_stopped()) {
        throw Cancelled();
    }
}

void TextSource::rewind() {
    hash_ = Sha256();
    ended_ = false;
    go_to_begin();
}

std::shared_ptr<const SequenceInput> TextSource::next() {
    std::shared_ptr<const SequenceInput> sequence = first_ ? std::move(first_) : read_next();
    if (sequence == nullptr && !is_stopped() && !std::exchange(ended_, true)) {
        const std::string digest = hash_.finish_hex();
        if (digest_.empty()) {
            digest_ = digest;
        } else if (digest_ != digest || skipped() != skipped_before_) {
            throw InputError(ErrorId::file_changed, name_, "the same texts as at the first reading",
                             "different texts", "record a file that no program writes to");
        }
    }
    return sequence;
}

} // namespace ponderscope
