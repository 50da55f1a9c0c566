// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/line_reader.h"

#include "core/base/error.h"
#include "core/base/files.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

namespace ponderscope {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{256} << 10;
/// Interval in which a waiting read checks the stop token.
constexpr int patience_ms = 200;

} // namespace

void LineReader::damaged(const char* found) const {
    throw InputError(ErrorId::text_compressed, path_,
                     packing_ == Packing::gzip ? "valid gzip data" : "valid Zstandard data", found,
                     "get the file again, or compress it again");
}

bool LineReader::read_more() {
    if (input_begin_ > 0) {
        std::copy(input_.begin() + static_cast<std::ptrdiff_t>(input_begin_),
                  input_.begin() + static_cast<std::ptrdiff_t>(input_end_), input_.begin());
        input_end_ -= input_begin_;
        input_begin_ = 0;
    }
    while (!regular_) { // wait for data, because a pipe may be silent
        pollfd waiting{descriptor_, POLLIN, 0};
        if (::poll(&waiting, 1, patience_ms) != 0) {
            break;
        }
        if (stop_.stop_requested()) {
            return false;
        }
    }
    while (true) {
        const ssize_t got = ::read(descriptor_, input_.data() + input_end_, input_.size() - input_end_);
        if (got >= 0) {
            input_end_ += static_cast<std::size_t>(got);
            consumed_ += got;
            return got > 0;
        }
        if (errno != EINTR) {
            throw_file_error(path_, errno, "read");
        }
    }
}

void LineReader::find_packing() {
    while (input_end_ < 4 && read_more()) {
    }
    const std::string_view first(input_.data(), input_end_);
    packing_ = first.starts_with("\x1f\x8b")           ? Packing::gzip
               : first.starts_with("\x28\xb5\x2f\xfd") ? Packing::zstd
                                                       : Packing::none;
    if (packing_ == Packing::gzip) {
        gzip_ = std::make_unique<z_stream>();
        if (inflateInit2(gzip_.get(), 15 + 16) != Z_OK) { // + 16: accept only a gzip header
            gzip_.reset();
        }
    } else if (packing_ == Packing::zstd) {
        zstd_ = ZSTD_createDCtx();
    }
    if (packing_ != Packing::none && !gzip_ && zstd_ == nullptr) {
        throw EnvironmentError(ErrorId::environment_memory,
                               path_.string() +
                                   ": out of memory while decompressing; close some programs and try again.");
    }
}

void LineReader::decode() {
    if (packing_ == Packing::gzip) {
        if (!inside_ && inflateReset(gzip_.get()) != Z_OK) {
            damaged("a state that cannot be");
        }
        gzip_->next_in = reinterpret_cast<Bytef*>(input_.data() + input_begin_);
        gzip_->avail_in = static_cast<uInt>(input_end_ - input_begin_);
        gzip_->next_out = reinterpret_cast<Bytef*>(decoded_.data());
        gzip_->avail_out = static_cast<uInt>(decoded_.size());
        const int answer = inflate(gzip_.get(), Z_NO_FLUSH);
        if (answer != Z_OK && answer != Z_STREAM_END && answer != Z_BUF_ERROR) {
            damaged("bytes that cannot be decoded");
        }
        inside_ = answer != Z_STREAM_END;
        input_begin_ = input_end_ - gzip_->avail_in;
        decoded_end_ = decoded_.size() - gzip_->avail_out;
        return;
    }
    ZSTD_inBuffer in{input_.data(), input_end_, input_begin_};
    ZSTD_outBuffer out{decoded_.data(), decoded_.size(), 0};
    const std::size_t answer = ZSTD_decompressStream(zstd_, &out, &in);
    if (ZSTD_isError(answer) != 0) {
        damaged("bytes that cannot be decoded");
    }
    inside_ = answer != 0;
    input_begin_ = in.pos;
    decoded_end_ = out.pos;
}

bool LineReader::fill() {
    if (packing_ == Packing::unknown) {
        find_packing();
    }
    decoded_begin_ = decoded_end_ = 0;
    if (packing_ == Packing::none) {
        if (input_begin_ == input_end_ && !read_more()) {
            return false;
        }
        decoded_.swap(input_);
        decoded_begin_ = input_begin_;
        decoded_end_ = input_end_;
        input_begin_ = input_end_ = 0;
        return true;
    }
    while (decoded_end_ == 0) {
        // A decoder that may hold more bytes needs no further input.
        if (input_begin_ == input_end_ && !(inside_ && flushing_) && !read_more()) {
            if (inside_ && !stop_.stop_requested()) {
                damaged("data that is cut off");
            }
            return false;
        }
        const std::size_t before = input_begin_;
        decode();
        flushing_ = decoded_end_ == decoded_.size();
        if (decoded_end_ == 0 && input_begin_ == before && input_begin_ != input_end_ &&
            input_end_ == input_.size()) {
            damaged("bytes that lead nowhere");
        }
    }
    return true;
}

std::string_view LineReader::waiting() {
    ended_ = decoded_begin_ == decoded_end_ && (ended_ || !fill());
    return ended_ ? std::string_view()
                  : std::string_view(decoded_.data() + decoded_begin_, decoded_end_ - decoded_begin_);
}

LineReader::LineReader(const std::filesystem::path& path, std::stop_token stop)
    : path_(path == "-" ? std::filesystem::path("standard input") : path),
      stop_(std::move(stop)),
      input_(buffer_bytes),
      decoded_(buffer_bytes) {
    if (path == "-") {
        descriptor_ = STDIN_FILENO;
    } else {
        descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor_ < 0) {
            throw_file_error(path, errno, "read");
        }
        owned_ = true;
    }
    struct stat status {};
    const int wrong = ::fstat(descriptor_, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
    if (wrong != 0) {
        if (owned_) {
            ::close(descriptor_);
        }
        throw_file_error(path_, wrong, "read");
    }
    regular_ = S_ISREG(status.st_mode);
    size_ = regular_ ? static_cast<std::int64_t>(status.st_size) : 0;
}

LineReader::~LineReader() {
    if (gzip_) {
        inflateEnd(gzip_.get());
    }
    ZSTD_freeDCtx(zstd_);
    if (owned_) {
        ::close(descriptor_);
    }
}

bool LineReader::next(std::string& line) {
    line.clear();
    too_long_ = false;
    bool any = false;
    while (true) {
        const std::string_view here = waiting();
        if (ended_) {
            if (stop_.stop_requested() || !any) {
                return false;
            }
            break; // the last line has no end
        }
        any = true;
        const std::size_t end = here.find('\n');
        const std::size_t count = std::min(end, here.size());
        too_long_ = too_long_ || line.size() + count > max_line_bytes;
        if (too_long_) {
            line = std::string();
        } else {
            line.append(here.substr(0, count));
        }
        decoded_begin_ += count + (end == std::string_view::npos ? 0 : 1);
        if (end != std::string_view::npos) {
            break;
        }
    }
    ++number_;
    if (line.ends_with('\r')) {
        line.pop_back();
    }
    return true;
}

bool LineReader::has_arrived() const {
    const std::string_view decoded(decoded_.data() + decoded_begin_, decoded_end_ - decoded_begin_);
    pollfd waiting{descriptor_, POLLIN, 0};
    return decoded.find('\n') != std::string_view::npos || input_begin_ < input_end_ ||
           ::poll(&waiting, 1, 2) > 0;
}

bool LineReader::read(std::string& text, std::size_t most) {
    const std::string_view next = waiting().substr(0, most);
    text += next;
    decoded_begin_ += next.size();
    return !ended_ && !stop_.stop_requested();
}

} // namespace ponderscope
