// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

namespace ponderscope {

/// Reads lines or bytes of a file or of standard input ("-"). Detects gzip (with one or more members) and
/// Zstandard (with one or more frames) by their first bytes and decodes them while reading. Memory: one line
/// and fixed buffers. One thread at a time.
class LineReader {
public:
    /// A longer line is skipped; see too_long().
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
    /// Whether next() has a line without a long wait. Waits up to two milliseconds for the end of a line that
    /// the other side of a pipe is writing.
    [[nodiscard]] bool has_arrived() const;
    /// Appends the next bytes, at most \p most, to \p text. False at the end, or after a stop.
    bool read(std::string& text, std::size_t most);
    [[nodiscard]] std::int64_t number() const;     ///< number of the last line, from 1
    [[nodiscard]] bool too_long() const;           ///< whether the last line exceeds max_line_bytes; next()
                                                   ///< then gave ""
    [[nodiscard]] std::int64_t bytes_read() const; ///< bytes read from the file, before decompression
    [[nodiscard]] std::int64_t file_bytes() const; ///< size of the file; 0: unknown

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ponderscope
