// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace ponderscope {

/// A whole file mapped read-only. The bytes stay valid while the object lives, also after a move. Thread-safe
/// once open. If another program shortens a mapped file, mmap ends this program with SIGBUS. So our own
/// writers only rename finished files into place.
class MappedFile {
public:
    /// InputError: nothing there, a folder, a device, a loop of links. EnvironmentError: no permission, no
    /// address space.
    static MappedFile open(const std::filesystem::path& path);

    MappedFile() = default;
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
    [[nodiscard]] std::string_view text() const;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    /// Hints to the kernel; without effect on what is read.
    void expect_sequential_reads() const;
    void will_need(std::span<const std::byte> part) const; ///< start reading it in the background
    void
    done_with(std::span<const std::byte> part) const; ///< its pages may go; they come back when touched again

private:
    std::filesystem::path path_;
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// A file that appears whole or not at all: written to a temporary file in the same folder, synced, and
/// renamed over \p path by commit(). Destroyed before that, it leaves nothing behind. A link at \p path is
/// followed.
class AtomicFile {
public:
    /// InputError: the folder does not exist, or something that is not a file is in the way.
    /// EnvironmentError: no permission.
    explicit AtomicFile(const std::filesystem::path& path);
    ~AtomicFile();
    AtomicFile(AtomicFile&& other) noexcept;
    AtomicFile& operator=(AtomicFile&&) = delete;
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void write(std::span<const std::byte> bytes); ///< EnvironmentError: disk full, quota, I/O error
    void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
    void commit(); ///< EnvironmentError. Once.

    /// The path of the bytes until commit(), for libraries that write a file themselves. The file exists and
    /// is empty.
    [[nodiscard]] const std::filesystem::path& temporary_path() const { return temporary_; }

private:
    void flush();
    [[noreturn]] void fail(int error) const;

    std::filesystem::path given_;
    std::filesystem::path target_;
    std::filesystem::path temporary_;
    int descriptor_ = -1;
    std::uint64_t written_ = 0;
    std::string buffer_;
};

/// Writes a whole file at once, atomically. Errors as AtomicFile.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

/// The file behind a name, so that two names of one file compare equal; all 0: no such file.
struct FileId {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    static FileId of(const std::filesystem::path& path); ///< a link is followed
    friend bool operator==(const FileId&, const FileId&) = default;
};

/// The name that a file which this process has open has by now; empty: none, it was removed, or the system
/// does not report it.
std::filesystem::path name_of_open_file(const FileId& file);

constexpr std::uint64_t default_max_file_bytes = std::uint64_t{1} << 30;

/// The bytes of a file. InputError: not a file, or larger than \p max_bytes. EnvironmentError: no permission,
/// read error.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = default_max_file_bytes);

/// A text to be read by a model or by us: not empty, valid UTF-8, no NUL bytes; InputError names the failed
/// check and the byte. The text is returned unchanged: a byte order mark and CRLF stay, so that spans are
/// offsets into the file.
std::string read_text_file(const std::filesystem::path& path,
                           std::uint64_t max_bytes = default_max_file_bytes);

/// The same checks on a text that is already in memory; \p what names it in the sentence (a path, "the
/// prompt").
void check_text(std::string_view text, const std::string& what);

/// The sentence for an errno on \p path: an InputError if the path is wrong, an EnvironmentError if the
/// machine refuses. \p verb: "read", "written".
[[noreturn]] void throw_file_error(const std::filesystem::path& path, int error, std::string_view verb);

} // namespace ponderscope
