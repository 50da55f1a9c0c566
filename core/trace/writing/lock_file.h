// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>

namespace ponderscope {

/// The file behind a name, so that two names of one file share one lock.
std::filesystem::path real_path(const std::filesystem::path& name);

/// "This trace is being written", for as long as the object lives: a lock on TRACE-lock beside the trace. The
/// lock goes with the process, however that ends; the file goes with the object. (A lock on the trace itself
/// would not do: closing any second descriptor of a file drops the locks that SQLite holds on it in the same
/// process.)
class LockFile {
public:
    /// InputError: another writer holds it. EnvironmentError: the folder cannot be written. \p wanted
    /// and \p found: the words of the sentence.
    explicit LockFile(const std::filesystem::path& trace,
                      const char* wanted = "a trace that nobody writes to",
                      const char* found = "one that another recording is writing");
    ~LockFile();
    LockFile(const LockFile&) = delete;
    LockFile& operator=(const LockFile&) = delete;

private:
    [[nodiscard]] bool has_name() const; ///< the name stands for the file that is locked
    std::filesystem::path path_;
    int descriptor_ = -1;
};

} // namespace ponderscope
