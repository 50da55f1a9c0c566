// SPDX-License-Identifier: GPL-3.0-or-later
// TraceStore: detects a moved, removed or replaced file, and saves its content.
#include "core/base/error.h"
#include "core/trace/writing/store.h"

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

/// A free name for the saved content: the trace's own, or NAME-saved, NAME-saved-2 and so on.
fs::path free_name(const fs::path& trace) {
    std::error_code error;
    fs::path name = trace;
    for (int i = 1; fs::exists(fs::symlink_status(name, error)); ++i) {
        name = trace;
        name.replace_filename(trace.stem().string() + "-saved" + (i > 1 ? "-" + std::to_string(i) : "") +
                              trace.extension().string());
    }
    return name;
}

} // namespace

std::array<FileId, 2> TraceStore::log_files() const {
    return {FileId::of(path_.string() + "-wal"), FileId::of(path_.string() + "-shm")};
}

void TraceStore::keep_file() {
    if (FileId::of(path_) != file_) {
        rescue();
    }
    if (!logs_) {
        return;
    }
    const std::array<FileId, 2> now = log_files();
    if (log_ == std::array<FileId, 2>() || now == log_) {
        log_ = now;
        return;
    }
    // New readers would not see writes to a log without a name. A new log needs a moment without readers:
    // wait, because this commit may be the last. If a reader stays, the old log remains in use.
    database_.make_single_file(250);
    if (database_.text("PRAGMA journal_mode") != "wal") {
        logs_ = database_.text("PRAGMA journal_mode=WAL") == "wal";
        log_ = {};
    }
    database_.wait_for_locks(Database::usual_wait);
}

void TraceStore::remove_log(bool any) {
    // SQLite does not remove the log of a file that lost its name, and a later trace of that name would read
    // it. This connection still has the log open.
    const std::array<FileId, 2> now = log_files();
    const std::array<const char*, 2> suffixes{"-wal", "-shm"};
    std::error_code ignored;
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (any || now[i] == log_[i]) {
            fs::remove(path_.string() + suffixes[i], ignored);
        }
    }
}

void TraceStore::rescue() {
    const std::string name = path_.string();
    const fs::path now = name_of_open_file(file_);
    const bool replaced = FileId::of(path_) != FileId();
    const std::string what = name +
                             (!now.empty() ? ": the trace was moved to " + now.string()
                              : replaced   ? std::string(": the trace was replaced by another file")
                                           : std::string(": the trace was removed")) +
                             " while it was written.";
    if (temporary_) {
        throw EnvironmentError(ErrorId::file_changed, what + " Nothing was written; try again.");
    }
    end_with_fault(what); // a run that was not ended stays partial, with this reason
    newest_run_ = 0;
    std::string where;
    try {
        if (!now.empty()) {
            // The only write that SQLite allows to a moved file is this checkpoint.
            (void)database_.text("PRAGMA wal_checkpoint(TRUNCATE)");
        }
        remove_log(!replaced);
        if (now.empty()) {
            const fs::path saved = free_name(path_);
            database_.vacuum(saved);
            sync_folder_of(saved);
            where = " What was recorded until then was saved as " + saved.string() + ".";
        } else {
            where = " What was recorded until then is there.";
        }
    } catch (const SqliteFailure& failure) {
        where = std::string(" What was recorded could not be saved (") + failure.what() + ").";
    }
    throw EnvironmentError(ErrorId::file_changed, what + where);
}

} // namespace ponderscope
