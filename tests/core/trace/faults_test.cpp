// SPDX-License-Identifier: GPL-3.0-or-later
// Traces where the machine fails: the n-th allocation of C++ or of SQLite, the n-th write of a disk that is
// full from then on or for a moment, and the power, which takes what was not synced. A program of its own: it
// puts itself between the tests and what they stand on. PONDERSCOPE_FAULTS: of all places to fail at, every
// how many-th is tried (13; 1: each).
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "core/trace/tools/check.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/errors.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <new>
#include <sqlite3.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

/// What the file system below needs for itself does not fail: no exception may pass through SQLite.
thread_local bool exempt = false;
struct Exempt {
    Exempt() { exempt = true; }
    ~Exempt() { exempt = false; }
    Exempt(const Exempt&) = delete;
    Exempt& operator=(const Exempt&) = delete;
};

/// Counts calls, and fails one of them, or one and all after it.
class Fault {
public:
    void arm(std::int64_t at, bool for_good) {
        calls_ = 0;
        for_good_ = for_good;
        at_ = at;
    }
    void disarm() { at_ = 0; }
    bool strikes() {
        const std::int64_t at = at_;
        if (at == 0 || exempt) {
            return false;
        }
        const std::int64_t call = ++calls_;
        return for_good_ ? call >= at : call == at;
    }
    [[nodiscard]] bool struck() const { return calls_ >= at_; } ///< asked before disarm()

private:
    std::atomic<std::int64_t> at_{0}, calls_{0};
    std::atomic<bool> for_good_{false};
};
Fault memory;
Fault disk;

sqlite3_mem_methods plain_memory;

/// A file system that passes on what it is asked for, remembers what was synced, and fails writes.
struct PowerCut {
    std::mutex mutex;
    std::map<std::string, std::string> synced;
} durable;

struct WatchedFile {
    sqlite3_file base;
    std::string* name;
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
WatchedFile* watched(sqlite3_file* file) {
    return reinterpret_cast<WatchedFile*>(file);
}
sqlite3_file* real(sqlite3_file* file) {
    return watched(file)->real();
}

std::string content_of(sqlite3_file* file) {
    sqlite3_int64 size = 0;
    file->pMethods->xFileSize(file, &size);
    std::string content(static_cast<std::size_t>(size), '\0');
    file->pMethods->xRead(file, content.data(), static_cast<int>(size), 0);
    return content;
}

const sqlite3_io_methods watched_methods{
    3,
    [](sqlite3_file* f) {
        const int code = real(f)->pMethods != nullptr ? real(f)->pMethods->xClose(real(f)) : SQLITE_OK;
        delete watched(f)->name;
        return code;
    },
    [](sqlite3_file* f, void* to, int n, sqlite3_int64 at) {
        return real(f)->pMethods->xRead(real(f), to, n, at);
    },
    [](sqlite3_file* f, const void* from, int n, sqlite3_int64 at) {
        return disk.strikes() ? SQLITE_FULL : real(f)->pMethods->xWrite(real(f), from, n, at);
    },
    [](sqlite3_file* f, sqlite3_int64 size) { return real(f)->pMethods->xTruncate(real(f), size); },
    [](sqlite3_file* f, int) { // the disk itself is not waited for
        const Exempt here;
        const std::lock_guard guard(durable.mutex);
        durable.synced[*watched(f)->name] = content_of(real(f));
        return SQLITE_OK;
    },
    [](sqlite3_file* f, sqlite3_int64* size) { return real(f)->pMethods->xFileSize(real(f), size); },
    [](sqlite3_file* f, int level) { return real(f)->pMethods->xLock(real(f), level); },
    [](sqlite3_file* f, int level) { return real(f)->pMethods->xUnlock(real(f), level); },
    [](sqlite3_file* f, int* is) { return real(f)->pMethods->xCheckReservedLock(real(f), is); },
    [](sqlite3_file* f, int what, void* with) {
        return real(f)->pMethods->xFileControl(real(f), what, with);
    },
    [](sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); },
    [](sqlite3_file* f) { return real(f)->pMethods->xDeviceCharacteristics(real(f)); },
    [](sqlite3_file* f, int page, int size, int extend, void volatile** to) {
        return real(f)->pMethods->xShmMap(real(f), page, size, extend, to);
    },
    [](sqlite3_file* f, int at, int n, int flags) {
        return real(f)->pMethods->xShmLock(real(f), at, n, flags);
    },
    [](sqlite3_file* f) { real(f)->pMethods->xShmBarrier(real(f)); },
    [](sqlite3_file* f, int remove) { return real(f)->pMethods->xShmUnmap(real(f), remove); },
    [](sqlite3_file* f, sqlite3_int64 at, int n, void** to) {
        return real(f)->pMethods->xFetch(real(f), at, n, to);
    },
    [](sqlite3_file* f, sqlite3_int64 at, void* p) { return real(f)->pMethods->xUnfetch(real(f), at, p); },
};

sqlite3_vfs* plain_disk = nullptr;

/// Before the first connection.
void stand_between() {
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain_memory);
    sqlite3_mem_methods failing = plain_memory;
    failing.xMalloc = [](int n) { return memory.strikes() ? nullptr : plain_memory.xMalloc(n); };
    failing.xRealloc = [](void* p, int n) {
        return memory.strikes() ? nullptr : plain_memory.xRealloc(p, n);
    };
    sqlite3_config(SQLITE_CONFIG_MALLOC, &failing);
    sqlite3_initialize();
    plain_disk = sqlite3_vfs_find(nullptr);
    static sqlite3_vfs disk_between = *plain_disk;
    disk_between.zName = "watched";
    disk_between.szOsFile = static_cast<int>(sizeof(WatchedFile)) + plain_disk->szOsFile;
    disk_between.xOpen = [](sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
        file->pMethods = nullptr;
        const int code = plain_disk->xOpen(plain_disk, name, real(file), flags, out);
        if (code == SQLITE_OK) {
            file->pMethods = &watched_methods;
            const Exempt here;
            watched(file)->name = new std::string(name != nullptr ? name : "");
        }
        return code;
    };
    disk_between.xDelete = [](sqlite3_vfs*, const char* name, int sync) {
        const Exempt here;
        const std::lock_guard guard(durable.mutex);
        durable.synced.erase(name);
        return plain_disk->xDelete(plain_disk, name, sync);
    };
    sqlite3_vfs_register(&disk_between, 1);
}

std::int64_t stride() {
    const char* set = std::getenv("PONDERSCOPE_FAULTS");
    return set != nullptr ? std::max(1, std::atoi(set)) : 13;
}

/// Sequences of these lengths, ended one after the other.
constexpr std::array<std::int64_t, 3> lengths{30, 5, 20};

void record(const fs::path& path) {
    TraceWriter writer(path, {.compress = true});
    testing::write_sample_run(writer, "first", 1, {lengths.begin(), lengths.end()}, 12);
    writer.finish();
}

/// Empty when a trace, where there is one, keeps its promises.
std::string faults_of(const fs::path& path) {
    if (!fs::exists(path) || fs::file_size(path) == 0) {
        return {};
    }
    try {
        const TraceReader reader = TraceReader::open(path);
        require_recorded(path);
        for (const RunInfo& run : reader.runs()) {
            for (const SequenceInfo& sequence : reader.sequences(run.id)) {
                const std::int64_t length = lengths.at(static_cast<std::size_t>(sequence.number));
                const TokenColumns tokens = reader.tokens(run.id, sequence.number);
                const TokenColumns given = testing::sample_tokens(
                    1 + static_cast<std::uint64_t>(sequence.number), 0, sequence.tokens, length);
                if (tokens.id != given.id || (sequence.complete && sequence.tokens != length)) {
                    return "sequence " + std::to_string(sequence.number) + " is not what was recorded";
                }
            }
        }
        return testing::is_sound(path) ? "" : "damaged pages";
    } catch (const InputError& error) {
        // Cut off before the tables were there: no trace yet.
        return error.id() == ErrorId::trace_kind ? std::string() : error.what();
    }
}

/// Runs \p act with a fault at every place, until one is behind its end. \p after looks at what is left; it
/// is told whether \p act came to its end.
template <class Act, class After>
std::int64_t everywhere(Fault& fault, bool for_good, const Act& act, const After& after) {
    const std::int64_t step = &fault == &disk ? 1 : stride(); // there are few writes
    std::int64_t tried = 0;
    for (std::int64_t n = 1;; n += step) {
        fault.arm(n, for_good);
        bool done = false;
        try {
            act();
            done = true;
        } catch (const Error&) {
        } catch (const std::bad_alloc&) {
        }
        const bool struck = fault.struck();
        fault.disarm();
        after(done, n);
        ++tried;
        if (!struck || ::testing::Test::HasFailure()) {
            EXPECT_TRUE(done) << "without a fault";
            return tried;
        }
    }
}

void forget(const fs::path& path) {
    for (const char* suffix : {"", "-wal", "-shm", "-journal", "-lock"}) {
        fs::remove(path.string() + suffix);
    }
    const std::lock_guard guard(durable.mutex);
    durable.synced.clear();
}

using TraceFaults = testing::TraceTest;

// One allocation, not all from then on: objects of the JSON library allocate while they are destroyed, where
// nothing may be thrown.
TEST_F(TraceFaults, MemoryEndsWhileATraceIsRead) {
    record(path);
    const auto tried = everywhere(
        memory, false,
        [&] {
            const TraceReader reader = TraceReader::open(path);
            const RunInfo run = reader.runs().at(0);
            // What is read is right, or it is refused.
            if (run.name != "first" || reader.sequences(1).size() != lengths.size() ||
                reader.text(1, 0) != testing::sample_text(30) || reader.vocabulary(1).at(7).second != "<7>" ||
                reader.tokens(1, 0).id != testing::sample_tokens(1, 0, 30, 30).id) {
                memory.disarm();
                ADD_FAILURE() << "another trace was read";
            }
        },
        [&](bool, std::int64_t n) {
            EXPECT_EQ(TraceReader::open(path).sequences(1).size(), lengths.size()) << n;
        });
    std::printf("%lld places\n", static_cast<long long>(tried));
}

TEST_F(TraceFaults, MemoryEndsWhileATraceIsWritten) {
    const auto tried = everywhere(
        memory, false, [&] { record(path); },
        [&](bool done, std::int64_t n) {
            EXPECT_EQ(faults_of(path), "") << "allocation " << n;
            if (done) {
                EXPECT_TRUE(TraceReader::open(path).runs().at(0).complete) << n;
            }
            forget(path);
        });
    std::printf("%lld places\n", static_cast<long long>(tried));
}

TEST_F(TraceFaults, TheDiskFillsUp) {
    for (const bool for_good : {false, true}) {
        const auto tried = everywhere(
            disk, for_good, [&] { record(path); },
            [&](bool done, std::int64_t n) {
                EXPECT_EQ(faults_of(path), "") << "write " << n;
                if (done) {
                    EXPECT_TRUE(TraceReader::open(path).runs().at(0).complete) << n;
                }
                forget(path);
            });
        std::printf("%lld places\n", static_cast<long long>(tried));
    }
}

TEST_F(TraceFaults, WhatWasKeptIsThereAndElseNothingIs) {
    for (std::int64_t n = 1;; ++n) {
        disk.arm(n, true);
        const std::string said = testing::error_of<Error>([&] { record(path); });
        const bool struck = disk.struck();
        disk.disarm();
        if (!struck) {
            forget(path);
            break;
        }
        if (said.empty()) { // behind the last commit: the log stays
            EXPECT_TRUE(TraceReader::open(path).runs().at(0).complete) << "write " << n;
            forget(path);
            continue;
        }
        const bool says_kept = said.find("is kept") != std::string::npos;
        const bool says_nothing = said.find("nothing was written") != std::string::npos;
        EXPECT_NE(says_kept, says_nothing) << "write " << n << ": " << said;
        EXPECT_EQ(fs::exists(path), says_kept) << "write " << n << ": " << said;
        forget(path);
    }
}

TEST_F(TraceFaults, AResumedRunThatDiesSaysWhy) {
    testing::write_trace(path, [&](TraceWriter& writer) {
        writer.begin_run(testing::sample_run("first"), testing::sample_signals());
        testing::add_sample_sequence(writer, 1, 30);
    });
    std::int64_t faults = 0;
    for (std::int64_t n = 1;; ++n) {
        disk.arm(n, false); // full for a moment
        bool died = false;
        bool resumed = false;
        try {
            TraceWriter writer(path);
            writer.resume_run(1, testing::sample_signals());
            resumed = true;
            testing::add_sample_sequence(writer, 1, 30);
            writer.finish();
        } catch (const Error&) {
            died = true;
        }
        const bool struck = disk.struck();
        disk.disarm();
        if (died && resumed) {
            const std::size_t said = TraceReader::open(path).faults(1).size();
            faults += said == 1 ? 1 : 0;
        }
        if (!struck) {
            break;
        }
    }
    forget(path);
    EXPECT_GT(faults, 0) << "the run is the writer's own, though its number is older than the writer";
}

/// The files as they come back: what was synced.
fs::path after_the_cut(const fs::path& folder) {
    const fs::path back = folder / "back";
    fs::remove_all(back);
    fs::create_directory(back);
    const std::lock_guard guard(durable.mutex);
    for (const auto& [name, content] : durable.synced) {
        write_file_atomically(back / fs::path(name).filename(), content);
    }
    return back / "a.ponder";
}

TEST_F(TraceFaults, WhatWasReportedAsFinishedIsThere) {
    record(path);
    const fs::path back = after_the_cut(folder.path());
    EXPECT_EQ(faults_of(back), "");
    EXPECT_TRUE(TraceReader::open(back).runs().at(0).complete);
    forget(path);
    // While somebody reads, the log stays beside the trace.
    testing::add_sample_run(path, "first", 1, {lengths.begin(), lengths.end()}, 12);
    sqlite3* reader = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &reader), SQLITE_OK);
    {
        TraceWriter writer(path);
        ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM run", nullptr, nullptr, nullptr),
                  SQLITE_OK);
        testing::write_sample_run(writer, "second", 1, {lengths.begin(), lengths.end()}, 12);
        writer.finish();
    }
    const fs::path in_two_files = after_the_cut(folder.path());
    EXPECT_TRUE(fs::exists(in_two_files.string() + "-wal"));
    EXPECT_EQ(faults_of(in_two_files), "");
    ASSERT_EQ(TraceReader::open(in_two_files).runs().size(), 2U);
    EXPECT_TRUE(TraceReader::open(in_two_files).runs()[1].complete);
    sqlite3_close(reader);
}

TEST_F(TraceFaults, ACutAtAnyWriteLeavesATraceThatKeepsItsPromises) {
    everywhere(
        disk, true, [&] { record(path); },
        [&](bool done, std::int64_t n) {
            const fs::path back = after_the_cut(folder.path());
            EXPECT_EQ(faults_of(back), "") << "write " << n;
            if (done) {
                EXPECT_TRUE(TraceReader::open(back).runs().at(0).complete) << n;
            }
            forget(path);
        });
}

} // namespace
} // namespace ponderscope

// Every allocation of the program passes here; the tests' own do not fail, as nothing is armed then. Not
// inlined: GCC would see new beside free.
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (ponderscope::memory.strikes()) {
        throw std::bad_alloc();
    }
    if (void* const memory = std::malloc(size == 0 ? 1 : size); memory != nullptr) {
        return memory;
    }
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

int main(int argc, char** argv) {
    ponderscope::stand_between();
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
