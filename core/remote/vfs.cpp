// SPDX-License-Identifier: GPL-3.0-or-later
// A read-only SQLite VFS for files on another machine (https://www.sqlite.org/vfs.html). The server shows the
// pages of one read transaction, including the write-ahead log. So SQLite here sees a file with a rollback
// journal, which others may write between two transactions. A lock begins a snapshot. The change counter in
// the file's header is File::version(), so SQLite drops its cache when the content is new.
#include "core/remote/file.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <sqlite3.h>
#include <utility>

namespace ponderscope::remote {
namespace {

thread_local std::exception_ptr failure;

struct OpenedFile {
    std::shared_ptr<File> file;
    std::optional<File::Snapshot> look = std::nullopt;
};

/// Our sqlite3_file. SQLite allocates its memory.
struct Handle {
    sqlite3_file base;
    OpenedFile* opened;
};

OpenedFile& of(sqlite3_file* file) {
    return *reinterpret_cast<Handle*>(file)->opened;
}

/// Runs \p body. Exceptions become error codes, because SQLite is C.
template <class Body>
int guarded(int code, Body body) {
    failure = nullptr;
    try {
        return body();
    } catch (const Moved&) {
        return SQLITE_BUSY_SNAPSHOT;
    } catch (const std::bad_alloc&) {
        return SQLITE_IOERR_NOMEM;
    } catch (...) {
        failure = std::current_exception();
        return code;
    }
}

int close_file(sqlite3_file* file) {
    delete reinterpret_cast<Handle*>(file)->opened;
    return SQLITE_OK;
}

void put_u32(std::span<std::byte> out, std::uint64_t from, std::uint64_t at, std::uint32_t value) {
    for (std::uint64_t i = 0; i < 4; ++i) {
        if (at + i >= from && at + i < from + out.size()) {
            out[at + i - from] = static_cast<std::byte>(value >> (24 - 8 * i) & 0xff);
        }
    }
}

int read_file(sqlite3_file* handle, void* data, int count, sqlite3_int64 offset) {
    return guarded(SQLITE_IOERR_READ, [&] {
        const std::span<std::byte> out(static_cast<std::byte*>(data), static_cast<std::size_t>(count));
        const auto from = static_cast<std::uint64_t>(offset);
        File& file = *of(handle).file;
        const bool whole = file.read(from, out);
        // https://www.sqlite.org/fileformat2.html#the_database_header
        if (from < 100) {
            for (const std::uint64_t at : {18U, 19U}) { // 1: rollback journal
                if (at >= from && at < from + out.size()) {
                    out[at - from] = std::byte{1};
                }
            }
            put_u32(out, from, 24, file.version()); // change counter
            put_u32(out, from, 28, static_cast<std::uint32_t>(file.size() / file.page_bytes()));
            put_u32(out, from, 92, file.version()); // the size is valid for this counter
        }
        return whole ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
    });
}

int file_size(sqlite3_file* file, sqlite3_int64* out) {
    *out = static_cast<sqlite3_int64>(of(file).file->size());
    return SQLITE_OK;
}

int lock_file(sqlite3_file* file, int level) {
    if (level > SQLITE_LOCK_SHARED) {
        return SQLITE_READONLY;
    }
    OpenedFile& opened = of(file);
    if (!opened.look) {
        return guarded(SQLITE_IOERR_LOCK, [&] {
            opened.look.emplace(opened.file);
            return SQLITE_OK;
        });
    }
    return SQLITE_OK;
}

int unlock_file(sqlite3_file* file, int level) {
    if (level == SQLITE_LOCK_NONE) {
        of(file).look.reset();
    }
    return SQLITE_OK;
}

int no_reserved_lock(sqlite3_file* /*file*/, int* out) {
    *out = 0;
    return SQLITE_OK;
}

const sqlite3_io_methods methods{
    .iVersion = 1,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = [](sqlite3_file*, const void*, int, sqlite3_int64) { return SQLITE_READONLY; },
    .xTruncate = [](sqlite3_file*, sqlite3_int64) { return SQLITE_READONLY; },
    .xSync = [](sqlite3_file*, int) { return SQLITE_OK; },
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = no_reserved_lock,
    .xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; },
    .xSectorSize = [](sqlite3_file*) { return 4096; },
    .xDeviceCharacteristics = [](sqlite3_file*) { return 0; },
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

sqlite3_vfs* usual() {
    return sqlite3_vfs_find(nullptr);
}

int open_file(sqlite3_vfs* /*vfs*/, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    if (name == nullptr || (flags & SQLITE_OPEN_MAIN_DB) == 0) { // a temporary file, as for a large sort
        return usual()->xOpen(usual(), name, file, flags, out_flags);
    }
    Handle& handle = *reinterpret_cast<Handle*>(file);
    handle.base.pMethods = nullptr;
    return guarded(SQLITE_CANTOPEN, [&] {
        const std::shared_ptr<File> opened = File::of(name);
        opened->expire_old();               // the opener wants the current content
        const File::Snapshot first(opened); // throws the errors of opening, with the name
        handle.opened = new OpenedFile{opened};
        handle.base.pMethods = &methods;
        if (out_flags != nullptr) {
            *out_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
        }
        return SQLITE_OK;
    });
}

int no_such_file(sqlite3_vfs* /*vfs*/, const char* /*name*/, int /*flags*/, int* out) {
    *out = 0; // SQLite must see no journals and logs here
    return SQLITE_OK;
}

int full_name(sqlite3_vfs* /*vfs*/, const char* name, int room, char* out) {
    const std::size_t length = std::strlen(name);
    if (length + 1 > static_cast<std::size_t>(room)) {
        return SQLITE_CANTOPEN;
    }
    std::memcpy(out, name, length + 1);
    return SQLITE_OK;
}

} // namespace

const char* vfs_name() {
    static constexpr const char* name = "ponderscope-ssh";
    static sqlite3_vfs vfs;
    static std::once_flag once;
    std::call_once(once, [] {
        vfs = *usual(); // for clocks and random numbers
        vfs.iVersion = 1;
        vfs.szOsFile = std::max(usual()->szOsFile, static_cast<int>(sizeof(Handle)));
        vfs.mxPathname = 4096;
        vfs.pNext = nullptr;
        vfs.zName = name;
        vfs.xOpen = open_file;
        vfs.xDelete = [](sqlite3_vfs*, const char*, int) { return SQLITE_READONLY; };
        vfs.xAccess = no_such_file;
        vfs.xFullPathname = full_name;
        sqlite3_vfs_register(&vfs, 0);
    });
    return name;
}

std::exception_ptr take_failure() {
    return std::exchange(failure, nullptr);
}

} // namespace ponderscope::remote
