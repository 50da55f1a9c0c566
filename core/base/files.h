// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ponderscope {

/// A whole file mapped read-only. The bytes stay valid while the object lives, also after a move. Thread-safe
/// once open. If another program shortens a mapped file, SIGBUS ends this program. For this reason our own
/// writers never change a file in place: they rename a finished file over it.
class MappedFile {
public:
    /// InputError: the path does not exist, or is a folder, a device or a loop of links. EnvironmentError: no
    /// permission, no address space.
    static MappedFile open(const std::filesystem::path& path);

    [[nodiscard]] std::span<const std::byte> bytes() const {
        return data_ ? std::span(data_.get(), data_.get_deleter().size) : std::span<const std::byte>();
    }
    [[nodiscard]] std::string_view text() const;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    /// These functions give the operating system hints. \p part may lie in any mapped file.
    void expect_sequential_reads() const;
    static void will_need(std::span<const std::byte> part); ///< start to read \p part in the background
    static void done_with(std::span<const std::byte> part); ///< the system may drop these pages

private:
    struct Unmap {
        std::size_t size;
        void operator()(const std::byte* data) const;
    };
    std::filesystem::path path_;
    std::unique_ptr<const std::byte, Unmap> data_;
};

/// A file that appears whole or not at all. The bytes go to a temporary file in the same folder; commit()
/// syncs this file and renames it over \p path. Without commit() the destructor deletes the temporary file.
/// If \p path is a link, its target is replaced.
class AtomicFile {
public:
    /// InputError: the folder does not exist, or \p path is not a regular file. EnvironmentError: no
    /// permission.
    explicit AtomicFile(const std::filesystem::path& path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void write(std::span<const std::byte> bytes); ///< EnvironmentError: disk full, quota, I/O error
    void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
    void commit(); ///< call it once; EnvironmentError: as in write()

    /// The temporary file, for libraries that write a file themselves. The file exists and is empty.
    [[nodiscard]] const std::filesystem::path& temporary_path() const { return temporary_; }

private:
    void flush();
    [[noreturn]] void fail(int error) const;

    std::filesystem::path given_;
    std::filesystem::path target_;
    std::filesystem::path temporary_;
    int descriptor_ = -1;
    std::string buffer_;
};

/// Writes a whole file at once, atomically. Throws the errors of AtomicFile.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

/// Identifies a file by device and inode, so that two paths to one file compare equal. All 0: no such file.
struct FileId {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    static FileId of(const std::filesystem::path& path); ///< follows links
    friend bool operator==(const FileId&, const FileId&) = default;
};

/// Follows links, also to a file that does not exist yet. Returns the absolute path of the file, or \p name
/// if a folder on the way cannot be read. InputError: a loop of links.
std::filesystem::path real_path(const std::filesystem::path& name);

/// Syncs the folder of a file, so that the file's name survives a power cut. Ignores file systems that refuse
/// this.
void sync_folder_of(const std::filesystem::path& file);

/// The current path of a file that this process has open. Empty: the file was removed, or the system does not
/// report the path.
std::filesystem::path name_of_open_file(const FileId& file);

constexpr std::uint64_t default_max_file_bytes = std::uint64_t{1} << 30;

/// The bytes of a file. InputError: not a file, or larger than \p max_bytes. EnvironmentError: no permission,
/// read error.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = default_max_file_bytes);

/// Reads a text file. InputError names the failed check and the byte: the text must not be empty, must be
/// valid UTF-8, and must not contain NUL bytes. The text is returned unchanged: a byte order mark and CRLF
/// stay, so that spans are offsets into the file.
std::string read_text_file(const std::filesystem::path& path,
                           std::uint64_t max_bytes = default_max_file_bytes);

/// Checks \p text as read_text_file() does. \p what names it in the message (a path, "the prompt").
void check_text(std::string_view text, const std::string& what);

/// Throws the error for an errno on \p path: InputError if the path is wrong, EnvironmentError if the machine
/// refuses. \p verb: the failed operation in the message, "read" or "written".
[[noreturn]] void throw_file_error(const std::filesystem::path& path, int error, std::string_view verb);

} // namespace ponderscope
