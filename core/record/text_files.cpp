// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/text_files.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/splitmix.h"
#include "core/base/utf8.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace ponderscope {
namespace {

/// Bytes of text before and after a part that are encoded with it. Two parts must have the same tokens in
/// `agreed` bytes around their cut.
constexpr std::size_t around = 1024;
constexpr std::size_t agreed = around / 2;
/// Encoding begins at the beginning of a line only if the line begins at most this many bytes earlier.
constexpr std::size_t longest_line = std::size_t{64} << 10;

bool is_white(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

[[noreturn]] void too_short(const std::string& name) {
    throw InputError(ErrorId::text_empty, name, "a text of at least two tokens", "one token",
                     "give a longer text");
}

} // namespace

TextFiles::TextFiles(TextFilesOptions options, const Tokenizer& tokenizer, const ProgressSink& progress,
                     std::stop_token stop)
    : TextSource(options.files.size() == 1 ? options.files.front().string() : "The files of --text",
                 std::move(stop)),
      options_(std::move(options)),
      tokenizer_(tokenizer),
      tail_(std::max(options_.part_bytes / 128, 2 * around)) {
    start(options_.files, progress);
}

void TextFiles::go_to_begin() {
    next_file_ = 0;
    reader_.reset();
    taken_tokens_ = 0;
}

bool TextFiles::open_next_file() {
    if (next_file_ == options_.files.size()) {
        return false;
    }
    const std::filesystem::path& file = options_.files[next_file_++];
    name_ = file == "-" ? "standard input" : file.string();
    title_ = file == "-" ? name_ : file.filename().string();
    reader_ = std::make_unique<LineReader>(file, stop_);
    buffer_.clear();
    expected_.clear();
    offset_ = seam_ = 0;
    begin_ = before_ = valid_ = 0;
    part_ = 0;
    at_end_ = false;
    return true;
}

void TextFiles::fill(std::size_t bytes) {
    while (!at_end_ && buffer_.size() < bytes) {
        at_end_ = !reader_->read(buffer_, bytes - buffer_.size());
    }
    if (is_stopped()) {
        return;
    }
    const std::string_view fresh = std::string_view(buffer_).substr(valid_);
    const std::size_t wrong = std::min(first_invalid_utf8(fresh), fresh.find('\0'));
    constexpr std::size_t longest_character = 4;
    const bool is_unfinished = !at_end_ && wrong < fresh.size() && fresh[wrong] != '\0' &&
                               fresh.size() - wrong < longest_character; // checked when the rest is read
    if (wrong != std::string_view::npos && !is_unfinished) {
        if (offset_ + valid_ == 0) {
            check_text(fresh, name_); // has more specific errors for the start of a text
        }
        throw InputError(ErrorId::text_bytes, name_, "UTF-8 text without NUL bytes",
                         "an invalid or NUL byte at byte " + std::to_string(offset_ + valid_ + wrong),
                         "convert it to UTF-8 (iconv) or check that it is a text file");
    }
    valid_ += is_unfinished ? wrong : fresh.size();
}

void TextFiles::look_at(const SequenceInput& part) {
    if (part_ == 1) {
        notices_.look_at(part.text, tokenizer_, options_.reading);
        if (reader_) { // another part follows
            notices_.add_cut_text(tokenizer_, options_.reading);
        }
    }
}

void TextFiles::read_through(const ProgressSink& progress) {
    std::int64_t all = 0;
    const auto say = [&](std::int64_t done, std::int64_t total) {
        report_progress(progress, {"reading through " + title_, done, total, "bytes"});
    };
    while (options_.limit_tokens > 0) { // encode all parts to find the limit
        const std::shared_ptr<const SequenceInput> sequence = read_next();
        if (sequence == nullptr) {
            break;
        }
        if (sequence->ids.size() < 2) {
            too_short(name_);
        }
        look_at(*sequence);
        all += static_cast<std::int64_t>(sequence->text.size());
        say(all, 0);
    }
    while (options_.limit_tokens == 0 && open_next_file()) {
        std::uint64_t bytes = 0;
        while (!at_end_ && !is_stopped()) {
            fill(std::size_t{1} << 20);
            if (offset_ == 0) {
                notices_.look_at(buffer_, tokenizer_, options_.reading);
            }
            bytes += valid_;
            if (at_end_ && offset_ == 0 && buffer_.size() <= short_text) {
                check_text(buffer_, name_);
                if (options_.reading.encode(tokenizer_, buffer_).ids.size() < 2) {
                    too_short(name_);
                }
            }
            hash_.update(std::string_view(buffer_).substr(0, valid_));
            all += static_cast<std::int64_t>(valid_);
            offset_ += valid_;
            buffer_.erase(0, valid_);
            valid_ = 0;
            say(reader_->bytes_read(), reader_->file_bytes());
        }
        if (bytes > options_.part_bytes + tail_) {
            notices_.add_cut_text(tokenizer_, options_.reading);
        }
    }
    text_bytes_ = all;
}

std::size_t TextFiles::choose_cut(const Encoding& encoding, std::size_t from) const {
    const std::size_t most = begin_ + options_.part_bytes;
    const std::size_t least = begin_ + options_.part_bytes / 2;
    const auto is_between_tokens = [&](std::size_t at) {
        const auto behind = std::lower_bound(encoding.begin.begin(), encoding.begin.end(), at - from);
        const auto before = behind - encoding.begin.begin();
        return before == 0 || encoding.end[static_cast<std::size_t>(before) - 1] <= at - from;
    };
    const auto ends_line = [&](std::size_t at) { return buffer_[at - 1] == '\n' && !is_white(buffer_[at]); };
    const auto ends_word = [&](std::size_t at) { return !is_white(buffer_[at - 1]) && buffer_[at] == ' '; };
    const auto ends_character = [&](std::size_t at) { return utf8_boundary_before(buffer_, at) == at; };
    const auto last = [&](const auto& is_place) {
        std::size_t at = most;
        while (at > least && !(is_place(at) && is_between_tokens(at))) {
            --at;
        }
        return at > least ? at : 0;
    };
    std::size_t cut = last(ends_line);
    cut = cut > 0 ? cut : last(ends_word);
    cut = cut > 0 ? cut : last(ends_character);
    if (cut == 0) {
        throw InputError(ErrorId::text_tokenizer, name_, "a text that the tokenizer cuts into tokens",
                         "one token of more than " + std::to_string(most - least) + " bytes from byte " +
                             std::to_string(offset_ + least),
                         "check that it is the right file");
    }
    return cut;
}

std::vector<TextFiles::Token> TextFiles::around_seam(const Encoding& encoding, std::uint64_t from) const {
    std::vector<Token> tokens;
    const std::uint64_t first = seam_ - std::min<std::uint64_t>(seam_, agreed);
    for (auto at = static_cast<std::size_t>(
             std::lower_bound(encoding.begin.begin(), encoding.begin.end(), first - std::min(first, from)) -
             encoding.begin.begin());
         at < encoding.ids.size() && from + encoding.begin[at] < seam_ + agreed; ++at) {
        if (from + encoding.begin[at] >= first) {
            tokens.push_back({encoding.ids[at], from + encoding.begin[at], from + encoding.end[at]});
        }
    }
    return tokens;
}

std::shared_ptr<const SequenceInput> TextFiles::read_next() {
    if (options_.limit_tokens > 0 && taken_tokens_ >= options_.limit_tokens) {
        return nullptr;
    }
    if (!reader_ && !open_next_file()) {
        return nullptr;
    }
    fill(begin_ + options_.part_bytes + tail_);
    if (is_stopped()) {
        return nullptr;
    }
    const bool is_last = at_end_;
    ++part_;
    if (buffer_.empty()) {
        check_text(buffer_, name_);
    }
    const std::size_t until =
        is_last ? buffer_.size() : utf8_boundary_before(buffer_, begin_ + options_.part_bytes + around);
    // Encode from the beginning of an earlier line, or, if there is none near, from a token of the previous
    // part. Starting at a token gives the same tokens even in a long repetition of a character or word.
    std::size_t from = before_;
    for (std::size_t at = from; at + longest_line > from && at > 0; --at) {
        if (buffer_[at - 1] == '\n' && !is_white(buffer_[at])) {
            from = at;
            break;
        }
    }
    const Encoding encoding =
        options_.reading.encode(tokenizer_, std::string_view(buffer_).substr(from, until - from));
    if (part_ > 1 && around_seam(encoding, offset_ + from) != expected_) {
        throw InputError(ErrorId::text_tokenizer, name_,
                         "a text whose tokens do not depend on where reading starts",
                         "different tokens at byte " + std::to_string(seam_),
                         "cut the text into several files, or into lines of JSON for --jsonl");
    }
    const std::size_t end = is_last ? buffer_.size() : choose_cut(encoding, from);

    auto sequence = std::make_shared<SequenceInput>();
    sequence->title = title_ + (part_ > 1 || !is_last ? ", part " + std::to_string(part_) : "");
    sequence->text = buffer_.substr(begin_, end - begin_);
    for (std::size_t at = 0; at < encoding.ids.size(); ++at) {
        const std::size_t begin = from + encoding.begin[at];
        if (begin >= begin_ && (begin < end || is_last)) {
            sequence->ids.push_back(encoding.ids[at]);
            sequence->begin.push_back(begin - begin_);
            sequence->end.push_back(from + encoding.end[at] - begin_);
        }
    }
    taken_tokens_ += static_cast<std::int64_t>(sequence->ids.size());
    hash_.update(sequence->text);
    if (is_last) {
        reader_.reset();
        return sequence;
    }
    seam_ = offset_ + end;
    expected_ = around_seam(encoding, offset_ + from);
    before_ = from;
    for (const std::uint64_t begin : encoding.begin) {
        if (from + begin + around > end) {
            break;
        }
        if (utf8_boundary_before(buffer_, from + begin) == from + begin) { // not inside a character
            before_ = from + begin;
        }
    }
    const std::size_t done = before_ - std::min(before_, longest_line + around);
    buffer_.erase(0, done);
    offset_ += done;
    valid_ -= done;
    begin_ = end - done;
    before_ -= done;
    return sequence;
}

void TextFiles::add_choices(nlohmann::json& choices) const {
    if (options_.limit_tokens > 0) {
        choices["limit_tokens"] = options_.limit_tokens;
    }
}

} // namespace ponderscope
