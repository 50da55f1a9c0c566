// SPDX-License-Identifier: GPL-3.0-or-later
// Traces that somebody else damaged, by chance and on purpose: whatever is in the file, reading it gives data
// or a sentence, never a crash, a hang or an allocation that the file does not back. Run it in the sanitizer
// build too. PONDERSCOPE_FUZZ_ROUNDS sets how many files of each kind are tried; a failing one is named by
// its round.
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/splitmix.h"
#include "core/trace/tools/export_csv.h"
#include "core/trace/reader.h"
#include "core/trace/schema.h"
#include "core/trace/tools/summary.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/fuzz/read_everything.h"
#include "tests/support/test_data.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

int rounds(int usual) {
    const char* set = std::getenv("PONDERSCOPE_FUZZ_ROUNDS");
    return set != nullptr ? std::max(1, std::atoi(set)) : usual;
}

class Random {
public:
    explicit Random(std::uint64_t seed) : seed_(seed) {}
    std::uint64_t below(std::uint64_t bound) { return bounded(splitmix64(seed_, n_++), bound); }

private:
    std::uint64_t seed_;
    std::uint64_t n_ = 0;
};

struct Outcome {
    int readable = 0; ///< every part
    int refused = 0;  ///< at least one part, with a sentence
    double slowest = 0;
};

/// Asks for everything that a view or a command asks for. Sentences are fine; anything else fails the test.
void read_everything(const fs::path& path, const std::string& what, Outcome& outcome) {
    const auto begin = std::chrono::steady_clock::now();
    const bool whole = fuzz::read_everything(
        path, [&](const std::string& broken) { ADD_FAILURE() << what << ": " << broken; });
    (whole ? outcome.readable : outcome.refused)++;
    outcome.slowest = std::max(
        outcome.slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

void write_bytes(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class TraceFuzz : public ::testing::Test {
protected:
    testing::TemporaryFolder folder;
    fs::path path = folder / "a.ponder";
    Outcome outcome;

    void SetUp() override {
        TraceWriter writer(path);
        testing::write_sample_run(writer, "first", 1, {300, 40}, 100);
        writer.begin_run(testing::sample_run("second"), {});
        writer.put_fault("A fault.");
        writer.leave_run();
        writer.finish();
    }
    void TearDown() override {
        std::printf("%d read whole, %d refused in part, slowest %.0f ms\n", outcome.readable, outcome.refused,
                    1e3 * outcome.slowest);
        EXPECT_LT(outcome.slowest, 20) << "a file of a few hundred kilobytes must not keep anybody waiting";
    }
    void forget_helpers() {
        for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
            fs::remove(path.string() + suffix);
        }
    }
};

TEST_F(TraceFuzz, FlippedBytes) {
    // Small pages: more of the file is structure, so more flips hit it.
    for (const int page_size : {512, schema::page_size}) {
        testing::sql(path, "PRAGMA page_size=" + std::to_string(page_size) + "; VACUUM");
        const std::string sound = read_file(path);
        for (int round = 0; round < rounds(300); ++round) {
            Random random(
                splitmix64(static_cast<std::uint64_t>(page_size), static_cast<std::uint64_t>(round)));
            std::string bytes = sound;
            const std::uint64_t flips = std::uint64_t{1} << random.below(7);
            for (std::uint64_t flip = 0; flip < flips; ++flip) {
                // Half of them at the beginnings of pages, where their headers are.
                std::uint64_t at = random.below(bytes.size());
                if (random.below(2) == 0) {
                    at = at / static_cast<std::uint64_t>(page_size) * static_cast<std::uint64_t>(page_size) +
                         random.below(64);
                }
                at = std::min<std::uint64_t>(at, bytes.size() - 1);
                bytes[at] = static_cast<char>(random.below(256));
            }
            forget_helpers();
            write_bytes(path, bytes);
            read_everything(
                path, "flips, page size " + std::to_string(page_size) + ", round " + std::to_string(round),
                outcome);
        }
        forget_helpers();
        write_bytes(path, sound);
    }
    EXPECT_GT(outcome.refused, 0);
}

TEST_F(TraceFuzz, CutsAndRepeats) {
    const std::string sound = read_file(path);
    for (int round = 0; round < rounds(100); ++round) {
        Random random(splitmix64(77, static_cast<std::uint64_t>(round)));
        std::string bytes = sound.substr(0, random.below(sound.size() + 1));
        if (random.below(2) == 0) { // pages of the file once more, in another place
            const std::uint64_t from = random.below(sound.size());
            bytes += sound.substr(from, random.below(sound.size() - from + 1));
        }
        forget_helpers();
        write_bytes(path, bytes);
        if (random.below(3) == 0) { // a log that belongs to nothing
            write_bytes(path.string() + "-wal", sound.substr(0, random.below(5000)));
        }
        read_everything(path, "cut, round " + std::to_string(round), outcome);
    }
    EXPECT_GT(outcome.refused, 0);
}

TEST_F(TraceFuzz, ValuesOfAnyKindInEveryColumn) {
    // Without STRICT a stranger can put any type anywhere.
    testing::sql(path, "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = replace(replace(sql, "
                       "'STRICT, WITHOUT', 'WITHOUT'), ') "
                       "STRICT', ')') WHERE type = 'table'; PRAGMA writable_schema=OFF");
    testing::sql(path, "VACUUM");
    const std::string loose = read_file(path);
    const std::vector<std::string> values = {"NULL",
                                             "-1",
                                             "0",
                                             "1",
                                             "7",
                                             "4294967296",
                                             "1000000000000",
                                             "9223372036854775807",
                                             "-9223372036854775808",
                                             "1e308",
                                             "-1e-300",
                                             "9e999",
                                             "''",
                                             "'x'",
                                             "x''",
                                             "x'00ff'",
                                             "'[4,4]'",
                                             "'[1e3]'",
                                             "'[]'",
                                             "'[[[[[['",
                                             "'token'",
                                             "'[\"token\"]'",
                                             "zeroblob(100000)",
                                             "printf('%.*c', 100000, '[')",
                                             "'F64'",
                                             "'I8'",
                                             "'\xff\xfe'"};
    int changed = 0;
    for (int round = 0; round < rounds(250); ++round) {
        Random random(splitmix64(99, static_cast<std::uint64_t>(round)));
        forget_helpers();
        write_bytes(path, loose);
        std::string what = "values, round " + std::to_string(round) + ":";
        const std::uint64_t changes = 1 + random.below(3);
        for (std::uint64_t change = 0; change < changes; ++change) {
            const auto tables = schema::tables();
            const schema::Table& table = tables[random.below(tables.size())];
            const schema::Column& column = table.columns[random.below(table.columns.size())];
            const std::string statement = std::string("UPDATE OR IGNORE ") + table.name + " SET " +
                                          column.name + " = " + values[random.below(values.size())] +
                                          (random.below(2) == 0 ? "" : " WHERE abs(random()) % 5 = 0");
            try {
                testing::sql(path, "PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY; " + statement);
                what += " " + statement + ";";
                ++changed;
            } catch (const std::runtime_error&) {
                // NOT NULL, or a key that must be a number.
            }
        }
        read_everything(path, what, outcome);
    }
    EXPECT_GT(changed, rounds(250) / 2);
    EXPECT_GT(outcome.refused, 0);
}

TEST_F(TraceFuzz, AWriterMeetsDamageWithASentenceToo) {
    const std::string sound = read_file(path);
    int opened = 0;
    for (int round = 0; round < rounds(60); ++round) {
        Random random(splitmix64(5, static_cast<std::uint64_t>(round)));
        std::string bytes = sound;
        for (int flip = 0; flip < 30; ++flip) {
            bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
        }
        forget_helpers();
        write_bytes(path, bytes);
        try {
            TraceWriter writer(path);
            testing::write_sample_run(writer, "appended", 2, {50}, 20);
            writer.finish();
            ++opened;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("a.ponder"), std::string::npos) << error.what();
        }
    }
    std::printf("appended to %d of %d damaged traces\n", opened, rounds(60));
}

} // namespace
} // namespace ponderscope
