// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ponderscope::remote {

/// The protocol of `ponderscope serve` and its client on standard input and output.
///
/// The server begins with a newline, `hello`, the protocol number, a blank, the program's version and a
/// newline. The client skips shell greetings before `hello`. Frames in both directions follow:
///
///     u32 bytes that follow | u32 number of the question | u8 kind or status | payload
///
/// Numbers are little-endian; a text is a u32 length and its bytes. Each question gets one answer with the
/// same number, in the order of the questions. Questions name files by path and depend on no earlier
/// question, so they can be repeated over a new connection.
inline constexpr std::uint32_t protocol = 2;
inline constexpr std::string_view hello = "\x01ponderscope serve ";
inline constexpr std::size_t frame_header = 9;
inline constexpr std::size_t max_question = std::size_t{1} << 20;
inline constexpr std::size_t max_answer = std::size_t{16} << 20;
inline constexpr std::size_t max_read = std::size_t{8} << 20; ///< most bytes in one Question::read
inline constexpr std::size_t max_entries = 20'000;            ///< largest number of entries in a folder

/// The payload of each question → the payload of its answer.
enum class Question : std::uint8_t {
    /// text path → u8 Kind, u64 device, u64 inode, u64 size, three i64: times of the file, its -wal and its
    /// .annotations in ns (0: none), text absolute path. A missing file is an answer, not an error.
    look = 1,
    /// text path → u32 n, then n times: text name.
    list = 2,
    /// text path, u64 known generation (0: none) → FileState. Begins a new snapshot of an SQLite file.
    renew = 3,
    /// text path, u64 generation, u64 offset, u32 length → the bytes. Status `moved` if the file has another
    /// generation now.
    read = 4,
};

enum class Status : std::uint8_t { ok = 0, wrong_input = 1, environment = 2, moved = 3 };

enum class Kind : std::uint8_t { none = 0, file = 1, folder = 2, trace = 3, checkpoint = 4, training = 5 };

/// A frame breaks the rules above.
class ProtocolFault : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class Packer {
public:
    Packer& number(std::uint64_t value, int bytes);
    Packer& u8(std::uint8_t value) { return number(value, 1); }
    Packer& u32(std::uint64_t value) { return number(value, 4); }
    Packer& u64(std::uint64_t value) { return number(value, 8); }
    Packer& i64(std::int64_t value) { return u64(static_cast<std::uint64_t>(value)); }
    Packer& text(std::string_view value);
    Packer& bytes(std::string_view value);
    std::string data;
};

/// Reads numbers and texts from bytes that outlive the object. ProtocolFault: too few bytes remain.
class Unpacker {
public:
    explicit Unpacker(std::string_view data) : data_(data) {}
    std::uint64_t number(int count);
    std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
    std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
    std::uint64_t u64() { return number(8); }
    std::int64_t i64() { return static_cast<std::int64_t>(u64()); }
    std::string_view bytes(std::size_t count);
    std::string_view text() { return bytes(u32()); }
    [[nodiscard]] std::string_view rest() { return bytes(data_.size()); }
    void end() const; ///< ProtocolFault if bytes remain

private:
    std::string_view data_;
};

std::string frame(std::uint32_t id, std::uint8_t kind, std::string_view payload);

struct Frame {
    std::uint32_t id = 0;
    std::uint8_t kind = 0;
    std::string payload;
};

/// Splits a stream into frames. ProtocolFault: a length beyond \p limit, or smaller than a header.
class FrameCutter {
public:
    explicit FrameCutter(std::size_t limit) : limit_(limit) {}
    void add(std::string_view bytes) { data_ += bytes; }
    bool next(Frame& out);

private:
    std::size_t limit_;
    std::string data_;
    std::size_t from_ = 0;
};

} // namespace ponderscope::remote
