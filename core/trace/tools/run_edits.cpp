// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/run_edits.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/trace/database.h"
#include "core/trace/schema.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/writing/lock_file.h"

#include <algorithm>
#include <unistd.h>
#include <vector>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

void need(Database& database, const fs::path& trace, const RunInfo& run) {
    Statement found = database.prepare("SELECT 1 FROM run WHERE id = ? AND name = ? AND started = ?");
    if (!found.bind_all(run.id, run.name, run.started).step()) {
        throw InputError(ErrorId::trace_run, trace.string() + ": has no run '" + printable(run.name, 100) +
                                                 "' any more: another window or program changed the trace. "
                                                 "Nothing was done; open the trace again.");
    }
}

/// Calls \p how with the trace locked and open for writing. Locks the real path, so all links share the lock.
template <class Edit>
void edit(const fs::path& trace, const RunInfo& run, const Edit& how) {
    const fs::path target = real_path(trace);
    check_trace_header(target);
    const LockFile lock(target, "a trace without a writer", "a trace that another program is writing");
    try {
        Database database(target, Database::Access::write);
        check_trace_tables(database, target);
        need(database, target, run);
        how(database, target);
    } catch (const SqliteFailure& failure) {
        throw_write_failure(target, failure);
    }
}

} // namespace

void check_run_name(const std::string& name) {
    if (name.empty() || name.size() > 1000 || !is_valid_utf8(name) ||
        std::any_of(name.begin(), name.end(),
                    [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; })) {
        throw InputError(ErrorId::usage_value, "expected a run name of 1 to 1000 bytes in one line, found '" +
                                                   printable(name, 60) + "'; choose another.");
    }
}

void delete_contents(Database& database, std::int64_t sequence) {
    // Token rows and pieces of text are ranges of row ids. Other tables have a column `sequence`.
    const std::string range = " WHERE row >= " + std::to_string(sequence << schema::position_bits) +
                              " AND row < " + std::to_string((sequence + 1) << schema::position_bits);
    database.execute("DELETE FROM token_row" + range + "; DELETE FROM text" + range);
    for (const char* table : {"chunk", "label"}) {
        database.execute(std::string("DELETE FROM ") + table +
                         " WHERE sequence = " + std::to_string(sequence));
    }
}

void delete_run(Database& database, std::int64_t run) {
    const std::string number = std::to_string(run);
    std::vector<std::int64_t> sequences;
    {
        Statement rows = database.prepare("SELECT id FROM sequence WHERE run = " + number);
        while (rows.step()) {
            sequences.push_back(rows.integer(0));
        }
    }
    for (const std::int64_t sequence : sequences) {
        delete_contents(database, sequence);
    }
    for (const char* table : {"sequence", "signal", "fault", "shard"}) {
        database.execute(std::string("DELETE FROM ") + table + " WHERE run = " + number);
    }
    database.execute("DELETE FROM run WHERE id = " + number +
                     "; DELETE FROM vocabulary WHERE tokenizer NOT IN (SELECT tokenizer FROM run)");
}

void rename_run(const fs::path& trace, const RunInfo& run, const std::string& name) {
    check_run_name(name);
    if (name == run.name) {
        return;
    }
    edit(trace, run, [&](Database& database, const fs::path& target) {
        database.execute("BEGIN IMMEDIATE");
        Statement taken = database.prepare("SELECT 1 FROM run WHERE name = ?");
        taken.bind(1, std::string_view(name));
        if (taken.step()) {
            throw InputError(ErrorId::file_exists, target.string() + ": holds a run '" +
                                                       printable(name, 100) +
                                                       "' already; choose another name.");
        }
        taken.reset();
        database.prepare("UPDATE run SET name = ? WHERE id = ?").run(name, run.id);
        rename_annotations(target, run.name, name); // if this throws, the trace is rolled back
        database.execute("COMMIT");
        database.make_single_file(250);
    });
}

void replace_run(const fs::path& trace, const RunInfo& old, const RunInfo& fresh) {
    edit(trace, fresh, [&](Database& database, const fs::path& target) {
        need(database, target, old);
        database.execute("BEGIN IMMEDIATE");
        delete_run(database, old.id);
        database.prepare("UPDATE run SET name = ? WHERE id = ?").run(old.name, fresh.id);
        database.execute("COMMIT");
        database.make_single_file(250);
    });
}

void remove_run(const fs::path& trace, const RunInfo& run, const std::stop_token& stop) {
    edit(trace, run, [&](Database& database, const fs::path& target) {
        const FileId read = FileId::of(target);
        const TemporaryDatabase passing(target.string() + ".without-" + std::to_string(::getpid()));
        database.vacuum(passing.path);
        throw_if_stopped(stop);
        {
            Database fresh(passing.path, Database::Access::write);
            fresh.execute("BEGIN IMMEDIATE");
            delete_run(fresh, run.id);
            fresh.execute("COMMIT");
            throw_if_stopped(stop);
            fresh.vacuum();
            if (const std::string answer = fresh.text("PRAGMA quick_check(1)"); answer != "ok") {
                throw InputError(ErrorId::trace_damaged, target, "an undamaged trace",
                                 "a damaged trace (" + answer + ")", "take the trace from its source again");
            }
        }
        // SQLite would apply a log of the old file to the new file.
        std::error_code error;
        (void)database.text("PRAGMA wal_checkpoint(TRUNCATE)");
        if (const auto left = fs::file_size(target.string() + "-wal", error); !error && left > 0) {
            throw EnvironmentError(
                ErrorId::trace_locked,
                target.string() + ": another program reads the trace; close that program and try again.");
        }
        fs::permissions(passing.path, fs::status(target).permissions(), error);
        throw_if_stopped(stop);
        if (FileId::of(target) != read) {
            throw EnvironmentError(ErrorId::file_changed,
                                   target.string() + ": the trace was moved, removed or replaced meanwhile; "
                                                     "nothing was changed. Open it again.");
        }
        fs::rename(passing.path, target, error);
        if (error) {
            throw EnvironmentError(ErrorId::environment_failed,
                                   target.string() + ": cannot be written (" + error.message() +
                                       "); nothing was changed. Check the permissions of its folder.");
        }
        sync_folder_of(target);
    });
}

void forget_run(const fs::path& trace, std::int64_t run) noexcept {
    try {
        const fs::path target = real_path(trace);
        const LockFile lock(target);
        Database database(target, Database::Access::write);
        database.execute("BEGIN IMMEDIATE");
        delete_run(database, run);
        database.execute("COMMIT");
    } catch (const std::exception&) {
        // The caller reports the earlier failure.
    }
}

} // namespace ponderscope
