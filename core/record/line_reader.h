// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

struct z_stream_s;
struct ZSTD_DCtx_s;

namespace ponderscope {

/// Reads lines or bytes of a file or of standard input ("-"). Detects gzip (one or more members) and
/// Zstandard (one or more frames) by the first bytes. Decodes while reading. Memory: one line and fixed
/// buffers. One thread at a time.
class LineReader {
public:
    /// Longer lines are skipped (too_long()).
    static constexpr std::size_t max_line_bytes = std::size_t{64} << 20;

    /// InputError: the path does not exist or is a folder. EnvironmentError: no permission. \p stop ends a
    /// read that waits (a pipe).
    explicit LineReader(const std::filesystem::path& path, std::stop_token stop = {});
    ~LineReader();
    LineReader(const LineReader&) = delete;
    LineReader& operator=(const LineReader&) = delete;

    /// Reads the next line without its end ("\n" or "\r\n"). False at the end, or after a stop. InputError:
    /// compressed data is damaged or truncated.
    bool next(std::string& line);
    /// Whether next() can return a line at once. Waits up to two milliseconds for the end of a line that
    /// another program is writing to a pipe.
    [[nodiscard]] bool has_arrived() const;
    /// Appends the next bytes, at most \p most, to \p text. False at the end, or after a stop.
    bool read(std::string& text, std::size_t most);
    [[nodiscard]] std::int64_t number() const { return number_; } ///< number of the last line, from 1
    /// Whether the last line exceeds max_line_bytes. next() then returned an empty line.
    [[nodiscard]] bool too_long() const { return too_long_; }
    /// Bytes read from the file, before decompression.
    [[nodiscard]] std::int64_t bytes_read() const { return consumed_; }
    [[nodiscard]] std::int64_t file_bytes() const { return size_; } ///< size of the file; 0: unknown

private:
    enum class Packing : std::uint8_t { unknown, none, gzip, zstd };

    [[noreturn]] void damaged(const char* found) const;
    /// Appends stored bytes to `input_`. False at the end, or after a stop.
    bool read_more();
    void find_packing();
    /// Calls the decoder once with the bytes of `input_`.
    void decode();
    /// Decodes at least one more byte. False at the end, or after a stop.
    bool fill();
    /// Decoded bytes that are not yet read. Empty at the end, or after a stop.
    std::string_view waiting();

    std::filesystem::path path_;
    std::stop_token stop_;
    int descriptor_ = -1;
    bool owned_ = false;
    bool regular_ = false;
    std::int64_t size_ = 0;
    std::int64_t consumed_ = 0;
    Packing packing_ = Packing::unknown;
    std::vector<char> input_, decoded_;
    std::size_t input_begin_ = 0, input_end_ = 0;
    std::size_t decoded_begin_ = 0, decoded_end_ = 0;
    std::unique_ptr<z_stream_s> gzip_; ///< decoder of gzip data; null: none
    ZSTD_DCtx_s* zstd_ = nullptr;
    bool inside_ = false;   ///< a member or frame has begun and not ended
    bool flushing_ = false; ///< the last call filled the buffer: the decoder may hold more bytes
    bool ended_ = false;
    std::int64_t number_ = 0;
    bool too_long_ = false;
};

} // namespace ponderscope
