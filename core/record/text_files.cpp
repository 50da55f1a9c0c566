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

/// The rest behind a part has more bytes than that, unless a part is larger.
constexpr std::size_t shortest_rest = 2048;

bool is_white(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/// The bytes at the end that may be a character's first ones.
std::size_t unfinished_character(std::string_view text) {
    for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if (byte >= 0xC0) {
            return byte >= 0xF0 || (byte >= 0xE0 && back < 3) || back < 2 ? back : 0;
        }
        if (byte < 0x80) {
            return 0;
        }
    }
    return 0;
}

/// Where a part of at most so many bytes ends: with a line, or else a word, or else a character.
std::size_t cut_of(std::string_view text, std::size_t most) {
    for (std::size_t at = most; at > most / 2; --at) {
        if (text[at - 1] == '\n' && !is_white(text[at])) {
            return at;
        }
    }
    for (std::size_t at = most; at > most / 2; --at) {
        if (!is_white(text[at - 1]) && text[at] == ' ') {
            return at;
        }
    }
    return utf8_boundary_before(text, most);
}

[[noreturn]] void too_short(const std::string& name) {
    throw InputError(ErrorId::text_empty, name, "a text of at least two tokens", "one", "give a longer one");
}

} // namespace

TextFiles::TextFiles(TextFilesOptions options, const Tokenizer& tokenizer, const ProgressSink& progress,
                     std::stop_token stop)
    : TextSource(std::move(stop)),
      options_(std::move(options)),
      tokenizer_(tokenizer),
      tail_(std::max(options_.part_bytes / 128, shortest_rest)) {
    rewind();
    const bool once = std::any_of(options_.files.begin(), options_.files.end(), [](const auto& file) {
        std::error_code error;
        return file == "-" || std::filesystem::is_fifo(file, error);
    });
    if (once) {
        first_ = read_next(); // whether there is anything right is known before a trace is begun
        if (first_ != nullptr) {
            notices_.look_at(first_->text, tokenizer_, options_.reading);
        }
    } else {
        read_through(progress);
        rewind();
    }
    if (is_stopped()) {
        throw Cancelled();
    }
}

void TextFiles::rewind() {
    hash_ = Sha256();
    next_file_ = 0;
    reader_.reset();
    taken_tokens_ = 0;
    ended_ = false;
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
    offset_ = 0;
    valid_ = 0;
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
    const std::size_t whole = fresh.size() - (at_end_ ? 0 : unfinished_character(fresh));
    const std::size_t wrong = std::min(first_invalid_utf8(fresh.substr(0, whole)), fresh.find('\0'));
    if (wrong != std::string_view::npos) {
        if (offset_ + valid_ == 0) {
            check_text(fresh.substr(0, whole), name_); // says more of how a text begins
        }
        throw InputError(ErrorId::text_bytes, name_, "UTF-8 text without NUL bytes",
                         "another byte at byte " + std::to_string(offset_ + valid_ + wrong),
                         "convert it to UTF-8 (iconv) or check that it is a text file");
    }
    valid_ += whole;
}

void TextFiles::read_through(const ProgressSink& progress) {
    std::int64_t all = 0;
    const auto say = [&](std::int64_t done, std::int64_t total) {
        if (progress) {
            progress({"reading through " + title_, done, total, "bytes"});
        }
    };
    while (options_.limit_tokens > 0) { // only the tokens say where a limit lies
        const std::shared_ptr<const SequenceInput> sequence = read_next();
        if (sequence == nullptr) {
            break;
        }
        if (sequence->ids.size() < 2) {
            too_short(name_);
        }
        notices_.look_at(sequence->text, tokenizer_, options_.reading);
        all += static_cast<std::int64_t>(sequence->text.size());
        say(all, 0);
    }
    while (options_.limit_tokens == 0 && open_next_file()) {
        while (!at_end_ && !is_stopped()) {
            fill(std::size_t{1} << 20);
            if (offset_ == 0) {
                notices_.look_at(buffer_, tokenizer_, options_.reading);
            }
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
    }
    digest_ = hash_.finish_hex();
    text_bytes_ = all;
}

std::shared_ptr<const SequenceInput> TextFiles::read_next() {
    if (options_.limit_tokens > 0 && taken_tokens_ >= options_.limit_tokens) {
        return nullptr;
    }
    if (!reader_ && !open_next_file()) {
        return nullptr;
    }
    fill(options_.part_bytes + tail_);
    if (is_stopped()) {
        return nullptr;
    }
    const bool is_last = at_end_;
    ++part_;
    if (buffer_.empty()) {
        check_text(buffer_, name_);
    }
    auto sequence = std::make_shared<SequenceInput>();
    sequence->title = title_ + (part_ > 1 || !is_last ? ", part " + std::to_string(part_) : "");
    sequence->text = is_last ? buffer_ : buffer_.substr(0, cut_of(buffer_, options_.part_bytes));
    Encoding encoding = options_.reading.encode(tokenizer_, sequence->text);
    sequence->ids = std::move(encoding.ids);
    sequence->begin = std::move(encoding.begin);
    sequence->end = std::move(encoding.end);
    taken_tokens_ += static_cast<std::int64_t>(sequence->ids.size());
    hash_.update(sequence->text);
    if (is_last) {
        reader_.reset();
    }
    const std::size_t done = sequence->text.size();
    buffer_.erase(0, done);
    offset_ += done;
    valid_ -= done;
    return sequence;
}

std::shared_ptr<const SequenceInput> TextFiles::next() {
    std::shared_ptr<const SequenceInput> sequence = first_ ? std::move(first_) : read_next();
    if (sequence == nullptr && !is_stopped() && !ended_) {
        ended_ = true;
        const std::string digest = hash_.finish_hex();
        if (digest_.empty()) {
            digest_ = digest;
        }
        require_unchanged(options_.files.size() == 1 ? options_.files.front().string()
                                                     : "The files of --text",
                          digest_, digest);
    }
    return sequence;
}

void TextFiles::add_choices(nlohmann::json& choices) const {
    if (options_.limit_tokens > 0) {
        choices["limit_tokens"] = options_.limit_tokens;
    }
}

} // namespace ponderscope
