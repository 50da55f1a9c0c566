// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/files.h"

#include "core/base/error.h"
#include "core/base/utf8.h"

#include <algorithm>
#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t write_buffer_bytes = std::size_t{1} << 20;

/// An open file descriptor that closes itself.
class Descriptor {
public:
    explicit Descriptor(int value) : value_(value) {}
    ~Descriptor() {
        if (value_ >= 0) {
            ::close(value_);
        }
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int get() const { return value_; }

private:
    int value_;
};

const char* kind_of(mode_t mode) {
    if (S_ISDIR(mode)) {
        return "a folder";
    }
    if (S_ISFIFO(mode)) {
        return "a pipe";
    }
    if (S_ISSOCK(mode)) {
        return "a socket";
    }
    return "a device";
}

/// A regular file, open for reading.
struct RegularFile {
    Descriptor descriptor;
    std::uint64_t size = 0;

    /// Does not wait if the path is a pipe.
    explicit RegularFile(const fs::path& path)
        : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
        struct stat status {};
        if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0) {
            throw_file_error(path, errno, "read");
        }
        if (!S_ISREG(status.st_mode)) {
            throw InputError(ErrorId::file_kind, path, "a file", kind_of(status.st_mode),
                             "give the path of a file");
        }
        size = static_cast<std::uint64_t>(status.st_size);
    }
};

/// Creates a file with a new name in \p folder. open() applies the umask to \p mode (reading the umask would
/// change it for other threads). Returns the descriptor, or -1 and errno.
int create_temporary(const fs::path& folder, mode_t mode, fs::path& name) {
    std::random_device random;
    for (;;) {
        name = folder / (".ponderscope-" + std::to_string(random()));
        const int descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (descriptor >= 0 || errno != EEXIST) {
            return descriptor;
        }
    }
}

void advise(std::span<const std::byte> part, int advice) {
    if (part.empty()) {
        return;
    }
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
    const auto aligned = begin / page * page;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the start of a mapped page
    ::madvise(reinterpret_cast<void*>(aligned), part.size() + (begin - aligned), advice);
}

} // namespace

void throw_file_error(const fs::path& path, int error, std::string_view verb) {
    const std::string where = path.string();
    const std::string cannot = where + ": cannot be " + std::string(verb) + ": ";
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        if (verb == "written") {
            throw InputError(ErrorId::file_missing, path, "a folder to write into", "no such folder",
                             "create the folder or give another path");
        }
        if (std::error_code ignored; fs::is_symlink(fs::symlink_status(path, ignored))) {
            throw InputError(ErrorId::file_missing, path, "a file", "a link to a missing file",
                             "restore the file that the link points to");
        }
        throw InputError(ErrorId::file_missing, path, "a file", "nothing at this path", "check the path");
    case ELOOP:
        throw InputError(ErrorId::file_kind, path, "a file", "a loop of links", "repair the links");
    case EISDIR:
        throw InputError(ErrorId::file_kind, path, "a file", "a folder", "give the path of a file");
    case ENAMETOOLONG:
        throw InputError(ErrorId::file_size, path, "a path", "a name that is too long", "give a shorter one");
    case EACCES:
    case EPERM:
        throw EnvironmentError(ErrorId::file_permission,
                               cannot + "no permission; change the permissions or choose another place.");
    case EROFS:
        throw EnvironmentError(ErrorId::file_permission,
                               cannot + "the file system is read-only; choose another place.");
    case ENOSPC:
        throw EnvironmentError(ErrorId::file_space,
                               cannot + "the disk is full; free some space or choose another place.");
    case EDQUOT:
        throw EnvironmentError(ErrorId::file_space,
                               cannot +
                                   "the disk quota is used up; free some space or choose another place.");
    case EMFILE:
    case ENFILE:
        throw EnvironmentError(ErrorId::environment_limit,
                               cannot + "too many files are open; close some programs or raise the limit.");
    case ENOMEM:
        throw EnvironmentError(ErrorId::environment_memory,
                               cannot + "out of memory; close some programs and try again.");
    default:
        throw EnvironmentError(ErrorId::environment_failed,
                               cannot + std::generic_category().message(error) + ".");
    }
}

MappedFile MappedFile::open(const fs::path& path) {
    const RegularFile opened(path);
    MappedFile file;
    file.path_ = path;
    if (opened.size > 0) {
        void* address = ::mmap(nullptr, opened.size, PROT_READ, MAP_PRIVATE, opened.descriptor.get(), 0);
        if (address == MAP_FAILED) {
            throw_file_error(path, errno, "read");
        }
        file.data_ = {static_cast<const std::byte*>(address), Unmap{opened.size}};
    }
    return file;
}

void MappedFile::Unmap::operator()(const std::byte* data) const {
    ::munmap(const_cast<std::byte*>(data), size);
}

std::string_view MappedFile::text() const {
    return {reinterpret_cast<const char*>(data_.get()), bytes().size()};
}

void MappedFile::expect_sequential_reads() const {
    advise(bytes(), MADV_SEQUENTIAL);
}

void MappedFile::will_need(std::span<const std::byte> part) {
    advise(part, MADV_WILLNEED);
}

void MappedFile::done_with(std::span<const std::byte> part) {
    advise(part, MADV_DONTNEED);
}

AtomicFile::AtomicFile(const fs::path& path) : given_(path), target_(path) {
    if (std::error_code error; fs::is_symlink(fs::symlink_status(path, error))) {
        target_ = real_path(path);
    }
    struct stat status {};
    const bool exists = ::stat(target_.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
        throw InputError(ErrorId::file_kind, path, "a file to write", kind_of(status.st_mode),
                         "choose another name");
    }
    if (target_.filename().empty()) {
        throw InputError(ErrorId::file_kind, path, "a file name", "the name of a folder",
                         "add the name of the file");
    }
    const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
    descriptor_ = create_temporary(folder, exists ? 0600 : 0666, temporary_);
    if (descriptor_ < 0) {
        throw_file_error(folder, errno, "written");
    }
    if (exists) {
        ::fchmod(descriptor_, status.st_mode & 07777U);
    }
    buffer_.reserve(write_buffer_bytes);
}

AtomicFile::~AtomicFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
        ::unlink(temporary_.c_str());
    }
}

void AtomicFile::fail(int error) const {
    throw_file_error(given_, error, "written");
}

void AtomicFile::flush() {
    const char* next = buffer_.data();
    std::size_t left = buffer_.size();
    while (left > 0) {
        const ssize_t count = ::write(descriptor_, next, left);
        if (count < 0) {
            if (errno == EINTR) {
                continue;
            }
            fail(errno);
        }
        next += count;
        left -= static_cast<std::size_t>(count);
    }
    buffer_.clear();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const std::size_t taken = std::min(bytes.size(), write_buffer_bytes - buffer_.size());
        buffer_.append(reinterpret_cast<const char*>(bytes.data()), taken);
        bytes = bytes.subspan(taken);
        if (buffer_.size() == write_buffer_bytes) {
            flush();
        }
    }
}

void AtomicFile::commit() {
    flush();
    if (::fsync(descriptor_) != 0) {
        fail(errno);
    }
    if (::close(std::exchange(descriptor_, -1)) != 0 || ::rename(temporary_.c_str(), target_.c_str()) != 0) {
        const int error = errno;
        ::unlink(temporary_.c_str());
        fail(error);
    }
    sync_folder_of(target_);
}

void write_file_atomically(const fs::path& path, std::span<const std::byte> bytes) {
    AtomicFile file(path);
    file.write(bytes);
    file.commit();
}

void write_file_atomically(const fs::path& path, std::string_view text) {
    write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

FileId FileId::of(const fs::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? FileId{status.st_dev, status.st_ino} : FileId();
}

fs::path real_path(const fs::path& name) {
    std::error_code error;
    std::error_code ignored;
    fs::path real = fs::weakly_canonical(name, error);
    constexpr int most_links = 40;
    for (int i = 0; !error && i < most_links && fs::is_symlink(fs::symlink_status(real, ignored)); ++i) {
        real = fs::weakly_canonical(real.parent_path() / fs::read_symlink(real, ignored), error);
    }
    if (error) {
        real = name;
    }
    if (fs::is_symlink(fs::symlink_status(real, ignored))) {
        throw_file_error(name, ELOOP, "written");
    }
    return real;
}

void sync_folder_of(const fs::path& file) {
    const fs::path folder = fs::absolute(file).parent_path();
    const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.get() >= 0) {
        static_cast<void>(::fsync(directory.get()));
    }
}

fs::path name_of_open_file(const FileId& file) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd", error)) {
        // Compare through the link in /proc: opening and closing the file would drop its locks.
        if (FileId::of(entry.path()) == file) {
            const fs::path name = fs::read_symlink(entry.path(), error);
            return !error && FileId::of(name) == file ? name : fs::path();
        }
    }
    return {};
}

std::string read_file(const fs::path& path, std::uint64_t max_bytes) {
    const RegularFile opened(path);
    const std::uint64_t size = opened.size;
    if (size > max_bytes) {
        throw InputError(ErrorId::file_size, path, "at most " + std::to_string(max_bytes) + " bytes",
                         std::to_string(size) + " bytes", "check that it is the right file");
    }
    // Read to the end, not to the size: files in /proc have size 0, and a file may grow during the read.
    std::string content;
    content.resize(static_cast<std::size_t>(size) + 1);
    std::size_t used = 0;
    while (true) {
        if (used == content.size()) {
            content.resize(content.size() * 2);
        }
        const ssize_t count = ::read(opened.descriptor.get(), content.data() + used, content.size() - used);
        if (count < 0) {
            if (errno == EINTR) {
                continue;
            }
            throw_file_error(path, errno, "read");
        }
        if (count == 0) {
            break;
        }
        used += static_cast<std::size_t>(count);
        if (used > max_bytes) {
            throw InputError(ErrorId::file_size, path, "at most " + std::to_string(max_bytes) + " bytes",
                             "more bytes", "check that it is the right file");
        }
    }
    content.resize(used);
    return content;
}

void check_text(std::string_view text, const std::string& what) {
    if (text.empty()) {
        throw InputError(ErrorId::text_empty, what, "a text", "an empty text",
                         "give a text of at least two tokens");
    }
    const auto starts_with = [&](std::string_view mark) { return text.substr(0, mark.size()) == mark; };
    const std::size_t invalid = first_invalid_utf8(text);
    const std::size_t nul = text.find('\0');
    if (invalid == std::string_view::npos && nul == std::string_view::npos) {
        return;
    }
    const bool utf16 = starts_with("\xFF\xFE") || starts_with("\xFE\xFF");
    const std::string remedy = utf16 ? "it looks like UTF-16: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"
                                     : "convert it to UTF-8 (iconv) or check that it is a text file";
    if (invalid < nul) {
        throw InputError(ErrorId::text_bytes, what, "UTF-8 text",
                         "an invalid byte sequence at byte " + std::to_string(invalid), remedy);
    }
    throw InputError(ErrorId::text_bytes, what, "text without NUL bytes",
                     "a NUL byte at byte " + std::to_string(nul), remedy);
}

std::string read_text_file(const fs::path& path, std::uint64_t max_bytes) {
    std::string text = read_file(path, max_bytes);
    check_text(text, path.string());
    return text;
}

} // namespace ponderscope
