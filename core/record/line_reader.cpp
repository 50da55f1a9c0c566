// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/line_reader.h"

#include "core/base/error.h"
#include "core/base/files.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <zlib.h>
#include <zstd.h>

namespace ponderscope {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{256} << 10;
/// How often a read that waits looks whether it shall stop.
constexpr int patience_ms = 200;

enum class Packing { unknown, none, gzip, zstd };

Packing packing_of(std::string_view first) {
    if (first.starts_with("\x1f\x8b")) {
        return Packing::gzip;
    }
    return first.starts_with("\x28\xb5\x2f\xfd") ? Packing::zstd : Packing::none;
}

} // namespace

struct LineReader::Impl {
    std::filesystem::path path;
    std::stop_token stop;
    int descriptor = -1;
    bool owned = false;
    bool regular = false;
    std::int64_t size = 0;
    std::int64_t consumed = 0;
    Packing packing = Packing::unknown;
    std::vector<char> input = std::vector<char>(buffer_bytes);
    std::size_t input_begin = 0, input_end = 0;
    std::vector<char> decoded = std::vector<char>(buffer_bytes);
    std::size_t decoded_begin = 0, decoded_end = 0;
    z_stream gzip{};
    bool gzip_open = false;
    ZSTD_DCtx* zstd = nullptr;
    bool inside = false; ///< a member or frame has begun and not ended
    bool ended = false;
    std::int64_t number = 0;
    bool too_long = false;

    ~Impl() {
        if (gzip_open) {
            inflateEnd(&gzip);
        }
        ZSTD_freeDCtx(zstd);
        if (owned) {
            ::close(descriptor);
        }
    }

    [[noreturn]] void damaged(const char* found) const {
        throw InputError(path, packing == Packing::gzip ? "valid gzip data" : "valid Zstandard data", found,
                         "get the file again, or compress it again");
    }

    /// More stored bytes behind those that wait; false at the end and when stopped.
    bool read_more() {
        if (input_begin > 0) {
            std::copy(input.begin() + static_cast<std::ptrdiff_t>(input_begin),
                      input.begin() + static_cast<std::ptrdiff_t>(input_end), input.begin());
            input_end -= input_begin;
            input_begin = 0;
        }
        while (!regular) { // a pipe may stay silent
            pollfd waiting{descriptor, POLLIN, 0};
            if (::poll(&waiting, 1, patience_ms) != 0) {
                break;
            }
            if (stop.stop_requested()) {
                return false;
            }
        }
        while (true) {
            const ssize_t got = ::read(descriptor, input.data() + input_end, input.size() - input_end);
            if (got >= 0) {
                input_end += static_cast<std::size_t>(got);
                consumed += got;
                return got > 0;
            }
            if (errno != EINTR) {
                throw_file_error(path, errno, "read");
            }
        }
    }

    void find_packing() {
        while (input_end < 4 && read_more()) {
        }
        packing = packing_of({input.data(), input_end});
        if (packing == Packing::gzip) {
            // 16: with a gzip header, and nothing else.
            if (inflateInit2(&gzip, 15 + 16) != Z_OK) {
                throw EnvironmentError(path.string() +
                                       ": no memory to decompress it; close some programs and try again.");
            }
            gzip_open = true;
        } else if (packing == Packing::zstd) {
            zstd = ZSTD_createDCtx();
            if (zstd == nullptr) {
                throw EnvironmentError(path.string() +
                                       ": no memory to decompress it; close some programs and try again.");
            }
        }
    }

    /// One round of decoding from what waits in `input`.
    void decode() {
        if (packing == Packing::gzip) {
            if (!inside && inflateReset(&gzip) != Z_OK) {
                damaged("a state that cannot be");
            }
            gzip.next_in = reinterpret_cast<Bytef*>(input.data() + input_begin);
            gzip.avail_in = static_cast<uInt>(input_end - input_begin);
            gzip.next_out = reinterpret_cast<Bytef*>(decoded.data());
            gzip.avail_out = static_cast<uInt>(decoded.size());
            const int answer = inflate(&gzip, Z_NO_FLUSH);
            if (answer != Z_OK && answer != Z_STREAM_END && answer != Z_BUF_ERROR) {
                damaged("bytes that cannot be decoded");
            }
            inside = answer != Z_STREAM_END;
            input_begin = input_end - gzip.avail_in;
            decoded_end = decoded.size() - gzip.avail_out;
            return;
        }
        ZSTD_inBuffer in{input.data(), input_end, input_begin};
        ZSTD_outBuffer out{decoded.data(), decoded.size(), 0};
        const std::size_t answer = ZSTD_decompressStream(zstd, &out, &in);
        if (ZSTD_isError(answer) != 0) {
            damaged("bytes that cannot be decoded");
        }
        inside = answer != 0;
        input_begin = in.pos;
        decoded_end = out.pos;
    }

    /// More decoded bytes; false at the end and when stopped.
    bool fill() {
        if (packing == Packing::unknown) {
            find_packing();
        }
        decoded_begin = decoded_end = 0;
        if (packing == Packing::none) {
            if (input_begin == input_end && !read_more()) {
                return false;
            }
            decoded.swap(input);
            decoded_begin = input_begin;
            decoded_end = input_end;
            input_begin = input_end = 0;
            return true;
        }
        while (decoded_end == 0) {
            // What a decoder still holds comes out without further input.
            if (input_begin == input_end && !(inside && flushing) && !read_more()) {
                if (inside && !stop.stop_requested()) {
                    damaged("data that is cut off");
                }
                return false;
            }
            const std::size_t before = input_begin;
            decode();
            flushing = decoded_end == decoded.size();
            if (decoded_end == 0 && input_begin == before && input_begin != input_end &&
                input_end == input.size()) {
                damaged("bytes that lead nowhere");
            }
        }
        return true;
    }
    /// Decoded bytes that wait; none at the end and when stopped.
    std::string_view waiting() {
        ended = decoded_begin == decoded_end && (ended || !fill());
        return ended ? std::string_view()
                     : std::string_view(decoded.data() + decoded_begin, decoded_end - decoded_begin);
    }
    bool flushing = false; ///< the last round filled the buffer: more may wait inside the decoder
};

LineReader::LineReader(const std::filesystem::path& path, std::stop_token stop)
    : impl_(std::make_unique<Impl>()) {
    impl_->path = path == "-" ? std::filesystem::path("standard input") : path;
    impl_->stop = std::move(stop);
    if (path == "-") {
        impl_->descriptor = STDIN_FILENO;
    } else {
        impl_->descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (impl_->descriptor < 0) {
            throw_file_error(path, errno, "read");
        }
        impl_->owned = true;
    }
    struct stat status {};
    if (::fstat(impl_->descriptor, &status) != 0) {
        throw_file_error(impl_->path, errno, "read");
    }
    if (S_ISDIR(status.st_mode)) {
        throw_file_error(impl_->path, EISDIR, "read");
    }
    impl_->regular = S_ISREG(status.st_mode);
    impl_->size = impl_->regular ? static_cast<std::int64_t>(status.st_size) : 0;
}

LineReader::~LineReader() = default;

bool LineReader::next(std::string& line) {
    Impl& impl = *impl_;
    line.clear();
    impl.too_long = false;
    bool any = false;
    while (true) {
        const std::string_view waiting = impl.waiting();
        if (impl.ended) {
            if (impl.stop.stop_requested() || !any) {
                return false;
            }
            break; // the last line has no end
        }
        any = true;
        const std::size_t end = waiting.find('\n');
        const std::size_t count = std::min(end, waiting.size());
        impl.too_long = impl.too_long || line.size() + count > max_line_bytes;
        if (impl.too_long) {
            line = std::string();
        } else {
            line.append(waiting.substr(0, count));
        }
        impl.decoded_begin += count + (end == std::string_view::npos ? 0 : 1);
        if (end != std::string_view::npos) {
            break;
        }
    }
    ++impl.number;
    if (line.ends_with('\r')) {
        line.pop_back();
    }
    return true;
}

bool LineReader::has_arrived() const {
    const Impl& impl = *impl_;
    const std::string_view decoded(impl.decoded.data() + impl.decoded_begin,
                                   impl.decoded_end - impl.decoded_begin);
    pollfd waiting{impl.descriptor, POLLIN, 0};
    return decoded.find('\n') != std::string_view::npos || impl.input_begin < impl.input_end ||
           ::poll(&waiting, 1, 2) > 0;
}

bool LineReader::read(std::string& text, std::size_t most) {
    const std::string_view next = impl_->waiting().substr(0, most);
    text += next;
    impl_->decoded_begin += next.size();
    return !impl_->ended && !impl_->stop.stop_requested();
}

std::int64_t LineReader::number() const {
    return impl_->number;
}

bool LineReader::too_long() const {
    return impl_->too_long;
}

std::int64_t LineReader::bytes_read() const {
    return impl_->consumed;
}

std::int64_t LineReader::file_bytes() const {
    return impl_->size;
}

} // namespace ponderscope
