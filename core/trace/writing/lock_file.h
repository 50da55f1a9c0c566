// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>

namespace ponderscope {

/// While the object lives, a lock on TRACE-lock marks a trace as being written. Pass its real_path. The lock
/// ends with the process, also after a crash. The destructor removes TRACE-lock. The trace itself cannot
/// carry the lock: closing a second descriptor of the trace would release SQLite's locks on it.
class LockFile {
public:
    /// InputError: another writer holds the lock. EnvironmentError: the folder cannot be written. \p wanted
    /// and \p found: parts of the message.
    explicit LockFile(const std::filesystem::path& trace, const char* wanted = "a trace without a writer",
                      const char* found = "a trace that another recording is writing");
    ~LockFile();
    LockFile(const LockFile&) = delete;
    LockFile& operator=(const LockFile&) = delete;

private:
    [[nodiscard]] bool has_name() const; ///< the file's name still refers to the locked file
    std::filesystem::path path_;
    int descriptor_ = -1;
};

} // namespace ponderscope
