// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "core/trace/schema.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/errors.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

void write_bytes(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

class Hostile : public testing::TraceTest {
protected:
    void SetUp() override { testing::add_sample_run(path, "first", 1, {4000, 50}, 999); }
    std::string open() const {
        return testing::error_of([&] { (void)TraceReader::open(path); });
    }
    std::string append() const {
        return testing::error_of([&] { TraceWriter writer(path); });
    }
    /// Reads everything there is.
    std::string read() const {
        return testing::error_of([&] {
            const TraceReader reader = TraceReader::open(path);
            for (const RunInfo& run : reader.runs()) {
                const std::vector<SignalInfo> signals = reader.signal_infos(run.id);
                for (const SequenceInfo& sequence : reader.sequences(run.id)) {
                    (void)reader.text(run.id, sequence.number);
                    (void)reader.tokens(run.id, sequence.number);
                    for (const SignalInfo& signal : signals) {
                        (void)reader.signal(run.id, sequence.number, signal.name);
                    }
                }
                (void)reader.vocabulary(run.id);
                (void)reader.faults(run.id);
            }
        });
    }
    void plant(const std::string& statements) const { testing::sql(path, statements); }
};

TEST_F(Hostile, OtherFilesAreNamedAndKept) {
    const auto expect = [&](const std::string& part) {
        EXPECT_NE(open().find(part), std::string::npos) << open();
        EXPECT_NE(append().find(part), std::string::npos) << append();
        EXPECT_EQ(open().find('\n'), std::string::npos) << "one sentence";
        EXPECT_NE(open().find(path.string()), std::string::npos);
        EXPECT_FALSE(fs::exists(path.string() + "-lock"));
    };
    for (const std::string& bytes :
         {std::string("version https://git-lfs.github.com/spec/v1\n"), std::string(5000, 'x'),
          std::string("SQLite format 3\0", 16), std::string(1, '\0')}) {
        write_bytes(path, bytes);
        expect("[trace.kind]");
        EXPECT_EQ(read_file(path), bytes);
    }
    fs::remove(path);
    testing::sql(path, "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)");
    expect("[trace.kind]");
    EXPECT_EQ(testing::sql_value(path, "SELECT x FROM mine"), "1");
    fs::remove(path);
    EXPECT_NE(open().find("[file.missing]"), std::string::npos) << open();
    fs::create_directory(path);
    EXPECT_NE(open().find("[shard.missing]"), std::string::npos) << open();
    EXPECT_NE(append().find("kind]"), std::string::npos) << append();
    fs::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_NE(open().find("[trace.kind]"), std::string::npos) << open(); // and does not wait for a writer
    EXPECT_NE(append().find("[trace.kind]"), std::string::npos) << append();
    path = folder / "absent" / "a.ponder";
    EXPECT_NE(append().find("[file.missing]"), std::string::npos) << append();
}

TEST_F(Hostile, AnEmptyFileIsNoTraceButMayBecomeOne) {
    write_bytes(path, "");
    EXPECT_NE(open().find("[trace.kind]"), std::string::npos) << open();
    testing::add_sample_run(path, "first", 1, {10}, 5);
    EXPECT_EQ(read(), "");
}

TEST_F(Hostile, OtherVersionsAreLeftAlone) {
    for (const int version : {0, schema::version + 1, schema::version + 5}) {
        plant("PRAGMA user_version = " + std::to_string(version));
        const std::string before = read_file(path);
        for (const std::string& said : {open(), append()}) {
            EXPECT_TRUE(said.starts_with(path.string() + ": ") && said.ends_with("[trace.kind]")) << said;
            EXPECT_NE(said.find("version " + std::to_string(version)), std::string::npos) << said;
        }
        EXPECT_EQ(read_file(path), before);
    }
}

TEST_F(Hostile, ATemporaryTraceIsNew) {
    const std::string before = read_file(path);
    EXPECT_NE(testing::error_of([&] {
                  TraceWriter writer(path, {.final_path = "final.ponder"});
              }).find("[file.exists]"),
              std::string::npos);
    EXPECT_EQ(read_file(path), before);
}

TEST_F(Hostile, PlantedViewsAndTablesOfOtherKindsAreRefused) {
    const std::vector<std::pair<std::string, std::string>> plants = {
        {"ALTER TABLE token_row RENAME TO hidden; CREATE VIEW token_row AS SELECT * FROM hidden, hidden AS "
         "b, hidden AS c",
         " token_row"},
        {"DROP TABLE fault; CREATE VIRTUAL TABLE fault USING fts5(id, run, sequence, time, message)",
         " fault"},
        {"DROP TABLE training_point; CREATE VIEW training_point AS SELECT 1 AS training", " training_point"},
        {"ALTER TABLE training DROP COLUMN device", " training.device"},
        {"ALTER TABLE run DROP COLUMN step_unit", " run.step_unit"},
        {"DROP TABLE shard", " shard"},
        {"DROP TABLE vocabulary", " vocabulary"},
        {"ALTER TABLE chunk RENAME COLUMN data TO bytes", " chunk.data"},
        {"ALTER TABLE sequence RENAME COLUMN title TO old; ALTER TABLE sequence ADD COLUMN title TEXT AS "
         "(hex(zeroblob(100000000)))",
         " sequence.title"},
        {"ALTER TABLE text RENAME TO text2; CREATE INDEX text ON run (name)", " text"},
    };
    const std::string sound = read_file(path);
    for (const auto& [statements, part] : plants) {
        fs::remove(path);
        write_bytes(path, sound);
        plant(statements);
        EXPECT_NE(open().find(part), std::string::npos) << statements << "\n" << open();
        EXPECT_NE(append().find(part), std::string::npos) << statements << "\n" << append();
        EXPECT_TRUE(open().ends_with("[trace.damaged]") && append().ends_with("[trace.damaged]"))
            << statements;
    }
}

TEST_F(Hostile, PlantedTriggersNeverRun) {
    plant("CREATE TRIGGER a AFTER INSERT ON run BEGIN DELETE FROM token_row; DELETE FROM run; END;"
          "CREATE TRIGGER b AFTER INSERT ON token_row BEGIN UPDATE run SET name = 'taken over'; END;"
          "CREATE TRIGGER c INSTEAD OF INSERT ON token BEGIN DELETE FROM run; END;"
          "DROP VIEW run_summary; CREATE VIEW run_summary AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
          "SELECT i + 1 FROM n) "
          "SELECT i AS id, load_extension('evil') AS name FROM n");
    EXPECT_EQ(read(), "");
    testing::add_sample_run(path, "second", 2, {100}, 10);
    const TraceReader reader = TraceReader::open(path);
    ASSERT_EQ(reader.runs().size(), 2U);
    EXPECT_EQ(reader.runs()[0].name, "first");
    EXPECT_EQ(reader.tokens(1, 0).size(), 4000U);
}

TEST_F(Hostile, AbsurdValuesAreSentences) {
    const std::vector<std::pair<std::string, std::string>> plants = {
        {"UPDATE sequence SET tokens = 1000000000000", " 1000000000000"},
        {"UPDATE sequence SET tokens = -1", " -1"},
        {"UPDATE sequence SET tokens = 4001 WHERE number = 0", " 4000"},
        {"UPDATE sequence SET text_bytes = 9000000000000000000", " 9000000000000000000"},
        {"UPDATE sequence SET text_bytes = text_bytes + 1", " sequence 0"},
        {"UPDATE sequence SET number = 7 WHERE number = 1", " 7"},
        {"UPDATE sequence SET id = 1099511627776 WHERE number = 1", " 1099511627776"},
        {"UPDATE run SET tokens = 1000000000000", " 1000000000000"},
        {"UPDATE run SET scored_tokens = tokens + 1", " run 1"},
        {"UPDATE token_row SET id = 4294967296 WHERE row & 4294967295 = 17", "token 17"},
        {"UPDATE token_row SET text_end = 1000000 WHERE row & 4294967295 = 18", "token 18"},
        {"UPDATE token_row SET text_begin = -5 WHERE row & 4294967295 = 19", "token 19"},
        {"UPDATE token_row SET rank = -1 WHERE row & 4294967295 = 20", "token 20"},
        {"DELETE FROM token_row WHERE row & 4294967295 = 21", "token 21"},
        {"DELETE FROM text WHERE row & 4294967295 = 1", " sequence "},
        {"UPDATE text SET bytes = zeroblob(5000) WHERE row & 4294967295 = 0", " sequence "},
        {"UPDATE signal SET axes = '[\"step\"]'", " step;"},
        {"UPDATE signal SET axes = '[[[[[[['", "a.ponder"},
        {"UPDATE signal SET dtype = 'F128'", " F128"},
        {"UPDATE signal SET storage = 'elsewhere'", " elsewhere"},
        {"UPDATE signal SET axes = '[\"token\"]' WHERE name = 'nll'", " signal nll "},
        {"UPDATE chunk SET shape = '[9223372036854775807,9223372036854775807]'", "[9223372036854775807,"},
        {"UPDATE chunk SET shape = '[-1,4]'", " [-1,4] "},
        {"UPDATE chunk SET shape = '[4000.0,4]'", " [4000.0,4] "},
        {"UPDATE chunk SET shape = '{}'", " {} "},
        {"UPDATE chunk SET dtype = 'F128'", " F128"},
        {"UPDATE chunk SET dtype = 'F64'", " F64 "},
        {"UPDATE chunk SET data = zeroblob(0)", " 0 bytes"},
        {"UPDATE chunk SET tokens = tokens + 1", " signal "},
        {"UPDATE chunk SET first_token = first_token + 1", " signal "},
        {"DELETE FROM chunk WHERE first_token > 0", " signal "},
        {"UPDATE run SET name = hex(zeroblob(70000)) || id", " 131072 "},
        {"UPDATE signal SET title = hex(zeroblob(70000))", " 131072 "},
    };
    const std::string sound = read_file(path);
    EXPECT_EQ(read(), "");
    for (const auto& [statements, part] : plants) {
        fs::remove(path);
        write_bytes(path, sound);
        plant(statements);
        EXPECT_NE(read().find(part), std::string::npos) << statements << "\n" << read();
        EXPECT_TRUE(read().ends_with("[trace.damaged]")) << statements << "\n" << read();
    }
}

TEST_F(Hostile, ADamagedPartLeavesTheOthersReadable) {
    plant("UPDATE chunk SET dtype = 'F128' WHERE signal = (SELECT id FROM signal WHERE name = 'rank')");
    const TraceReader reader = TraceReader::open(path);
    EXPECT_THROW((void)reader.signal(1, 0, "rank"), InputError);
    EXPECT_TRUE(reader.signal(1, 0, "nll"));
    EXPECT_EQ(reader.tokens(1, 0).size(), 4000U);
    EXPECT_TRUE(testing::is_sound(path)); // SQLite's own structure is sound
}

TEST_F(Hostile, TruncatedFilesAreDamagedNotEmpty) {
    const std::string sound = read_file(path);
    for (const double part : {0.2, 0.5, 0.9, 0.99}) {
        write_bytes(path,
                    sound.substr(0, static_cast<std::size_t>(part * static_cast<double>(sound.size()))));
        const std::string sentence = read();
        EXPECT_NE(sentence.find("a.ponder: "), std::string::npos) << part;
        EXPECT_TRUE(sentence.ends_with("[trace.damaged]")) << sentence;
    }
}

TEST_F(Hostile, NamesOfFilesAreNoSyntax) {
    for (const char* name :
         {"a?b.ponder", "file:a.ponder", ":memory:", "a%20b#c.ponder", "-a.ponder", "\xC3\xBC b.ponder"}) {
        const fs::path odd = folder / name;
        testing::add_sample_run(odd, "first", 1, {10}, 5);
        EXPECT_TRUE(fs::exists(odd)) << name;
        EXPECT_EQ(TraceReader::open(odd).tokens(1, 0).size(), 10U) << name;
        // Relative names too.
        const fs::path before = fs::current_path();
        fs::current_path(folder.path());
        EXPECT_EQ(TraceReader::open(name).tokens(1, 0).size(), 10U) << name;
        fs::current_path(before);
    }
}

} // namespace
} // namespace ponderscope
