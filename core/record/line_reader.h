// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

namespace ponderscope {

/// Lines or bytes of a file, or of standard input ("-"), one after the other; gzip (also of several members)
/// and Zstandard (of several frames) are recognised by their first bytes and decoded while reading. Memory:
/// one line and fixed buffers. One thread at a time.
class LineReader {
public:
    /// The line is too long and was skipped.
    static constexpr std::size_t max_line_bytes = std::size_t{64} << 20;

    /// InputError: nothing there, a folder. EnvironmentError: no permission. A read that waits (a pipe) ends
    /// at \p stop.
    explicit LineReader(const std::filesystem::path& path, std::stop_token stop = {});
    ~LineReader();
    LineReader(const LineReader&) = delete;
    LineReader& operator=(const LineReader&) = delete;

    /// The next line without its end ("\n" or "\r\n"); false after the last one, and when stopped.
    /// InputError: compressed data that is damaged or cut off.
    bool next(std::string& line);
    /// Appends the next bytes to \p text, at most \p most; false at the end, and when stopped.
    bool read(std::string& text, std::size_t most);
    [[nodiscard]] std::int64_t number() const;     ///< of the line that next() gave, from 1
    [[nodiscard]] bool too_long() const;           ///< that line has more than max_line_bytes, and came empty
    [[nodiscard]] std::int64_t bytes_read() const; ///< as stored, compressed or not
    [[nodiscard]] std::int64_t file_bytes() const; ///< as stored; 0: not known
    /// A plain file can be read twice, a pipe cannot.
    [[nodiscard]] bool can_be_read_again() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ponderscope
