// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/check.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/words.h"
#include "core/trace/schema.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/packed.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

/// Two runs of one sequence of five words, and one of ids alone.
class Check : public testing::TraceTest {
protected:
    static constexpr float nan = std::numeric_limits<float>::quiet_NaN();

    static RunInfo run_info(const std::string& name) {
        RunInfo run;
        run.name = name;
        run.method = "my gate";
        run.tokenizer_digest = std::string(64, 'a');
        run.versions = "{}";
        run.notices = "[]";
        run.vocab_size = 50;
        run.max_steps = 2;
        return run;
    }
    static TokenColumns tokens() {
        TokenColumns t;
        t.id = {3, 4, 5, 6, 7};
        t.begin = {0, 3, 7, 12, 13};
        t.end = {3, 7, 12, 12, 15}; // a space is left out; the fourth token was added
        t.nll = {1, 2, 3, 0.5F, nan};
        t.entropy = {1, 1, nan, 1, 1};
        t.max_probability = {0.5F, 0.5F, nan, 0.5F, 0.5F};
        t.rank = {1, 2, 3, 1, 0};
        t.steps = {0, 1, 2, 0, 2};
        t.flops = {10, 20, 30, 10, 30};
        return t;
    }
    static std::vector<std::pair<std::string, SignalChunk>> chunks() {
        return {{signal::nll,
                 testing::packed<float>(DType::f32, {5, 3},
                                        {1, nan, nan, 3, 2, nan, 5, 4, 3, 0.5F, nan, nan, nan, nan, nan})},
                {signal::candidate_ids,
                 testing::packed<std::int32_t>(DType::i32, {5, 3, 1},
                                               {3, -1, -1, 4, 3, -1, 3, 4, 5, 9, -1, -1, 3, 4, 3})},
                {"gate", testing::packed<float>(DType::f32, {5, 3}, std::vector<float>(15, 0.25F))}};
    }

    /// A run of ids without text; \p ranked: it knows the ranks of its tokens.
    static void write_ids(TraceWriter& writer, bool ranked = true) {
        RunInfo ids = run_info("ids");
        ids.tokenizer_digest.clear();
        writer.begin_run(ids, {});
        TokenColumns columns = tokens();
        columns.begin.clear();
        columns.end.clear();
        if (!ranked) {
            columns.rank.assign(columns.id.size(), 0);
        }
        testing::add_sequence(writer, "ids", "", columns);
        writer.end_run(1);
    }

    void SetUp() override {
        TraceWriter writer(path);
        for (const char* name : {"first", "second"}) {
            writer.begin_run(
                run_info(name),
                {{signal::nll, {"token", "step"}, "nats", "t", "d"},
                 {signal::candidate_ids, {"token", "step", "candidate"}, "", "t", "d", DType::i32},
                 {"gate", {"token", "step"}, "", "t", "d", DType::f32, SignalStorage::plain, true}});
            writer.begin_sequence("words", "one two four si", "g");
            writer.put_labels({{0, 3, "number"}, {4, 7, "number"}});
            writer.append(tokens(), chunks());
            writer.end_sequence();
            writer.put_vocabulary({{3, "one"}, {4, " two"}, {5, " four"}, {6, ""}, {7, "si"}, {9, "i"}});
            writer.end_run(1);
        }
        write_ids(writer);
        const std::int64_t training = writer.begin_training({}, {{"loss", "", "nats", "t", "d"}});
        writer.put_points(training, {10, 640, 1.5}, {{"loss", 0, 3.25}});
        writer.end_training(training, true);
        writer.finish();
    }

    static std::vector<std::string> lines(const TraceCheck& check) {
        std::vector<std::string> all;
        for (const TraceFault& fault : check.faults) {
            all.push_back((fault.place.empty() ? "" : fault.place + ": ") + fault.message);
        }
        return all;
    }
    /// What is found in a copy that was changed.
    std::vector<std::string> found_after(const std::string& change) const {
        const fs::path copy = folder / "changed.ponder";
        fs::copy_file(path, copy, fs::copy_options::overwrite_existing);
        testing::sql(copy, change);
        return lines(check_trace(copy));
    }
    /// A fault has these parts in this order. \p parts: "PART*PART".
    void expect(const std::string& change, const std::string& parts) const {
        const std::vector<std::string> found = found_after(change);
        EXPECT_TRUE(std::ranges::any_of(
            found,
            [&](std::string_view fault) {
                return std::ranges::all_of(split_at(parts, '*'), [&](std::string_view part) {
                    const std::size_t at = fault.find(part);
                    fault.remove_prefix(at == std::string_view::npos ? 0 : at + part.size());
                    return at != std::string_view::npos;
                });
            }))
            << change << "\nwanted: " << parts << "\nfound:  " << ::testing::PrintToString(found);
    }
};

TEST_F(Check, TimesAreOfUtcToTheSecondOrFiner) {
    const auto sound = [&](const std::string& rest) {
        testing::sql(path, "UPDATE run SET started = '2026-01-02T03:04:" + rest + "'");
        return check_trace(path).faults.empty();
    };
    for (const char* const rest : {"05Z", "05.5Z", "05.250Z"}) {
        EXPECT_TRUE(sound(rest)) << rest;
    }
    for (const char* const rest : {"05.Z", "05,5Z", "0525Z", "05.2aZ", "05"}) {
        EXPECT_FALSE(sound(rest)) << rest;
    }
}

TEST_F(Check, WhatTheWriterWroteIsSound) {
    const TraceCheck check = check_trace(path);
    EXPECT_EQ(lines(check), std::vector<std::string>());
    EXPECT_EQ(check.runs, 3);
    EXPECT_EQ(check.sequences, 3);
    EXPECT_EQ(check.tokens, 15);
    EXPECT_EQ(check.chunks, 6);
}

/// Changes one bit of each byte of the first place in a file that holds these bytes.
void flip(const fs::path& path, const std::string& bytes) {
    std::string all = read_file(path);
    const std::size_t at = all.find(bytes);
    ASSERT_NE(at, std::string::npos);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        all[at + i] = static_cast<char>(all[at + i] ^ 1);
    }
    write_file_atomically(path, all);
}

TEST_F(Check, BytesThatChangedAreNoticedThoughTheirValuesArePossible) {
    const fs::path copy = folder / "flipped.ponder";
    const auto found = [&](const std::string& bytes) {
        fs::copy_file(path, copy, fs::copy_options::overwrite_existing);
        flip(copy, bytes);
        return lines(check_trace(copy));
    };
    // 60 bytes of gates, which stay numbers between 0 and 1.
    const float quarter = 0.25F;
    std::string gates;
    for (int i = 0; i < 15; ++i) {
        gates.append(reinterpret_cast<const char*>(&quarter), sizeof quarter);
    }
    ASSERT_EQ(gates.size(), 60U);
    const std::vector<std::string> wrong_gates = found(gates);
    ASSERT_EQ(wrong_gates.size(), 1U);
    EXPECT_NE(wrong_gates[0].find(" token 0 of signal gate of sequence 0 "), std::string::npos)
        << wrong_gates[0];
    const std::vector<std::string> wrong_text = found("one two four si");
    ASSERT_FALSE(wrong_text.empty());
    EXPECT_NE(::testing::PrintToString(wrong_text).find("text of sequence 0"), std::string::npos);
    // Numbers of tokens, changed so that sums and ranges hold.
    const std::vector<std::string> word =
        found_after("UPDATE vocabulary SET bytes = CAST('sj' AS BLOB) WHERE id = 7");
    ASSERT_FALSE(word.empty());
    EXPECT_TRUE(word[0].starts_with("run 1 (first): token id 7 ")) << word[0];
    const std::vector<std::string> row =
        found_after("UPDATE token_row SET entropy = entropy / 2 WHERE row = 4294967296 + 1");
    ASSERT_EQ(row.size(), 1U);
    EXPECT_TRUE(row[0].starts_with("run 1 (first): ")) << row[0];
    EXPECT_NE(row[0].find(" token_row of sequence 0 "), std::string::npos) << row[0];
}

TEST_F(Check, WhatWasWrittenWithoutDigestsIsSoundAndSaidToBeCheckedInPart) {
    EXPECT_EQ(check_trace(path).without_digest, 0);
    const fs::path copy = folder / "bare.ponder";
    fs::copy_file(path, copy);
    testing::sql(copy, "UPDATE chunk SET crc32 = NULL; UPDATE vocabulary SET crc32 = NULL; "
                       "UPDATE sequence SET text_crc32 = NULL, tokens_crc32 = NULL");
    const TraceCheck bare = check_trace(copy);
    EXPECT_EQ(lines(bare), std::vector<std::string>());
    EXPECT_EQ(bare.without_digest, 6 + 2 + 3); // arrays, texts, sequences of tokens
    testing::write_trace(copy, [](TraceWriter& writer) { write_ids(writer); });
    EXPECT_EQ(lines(check_trace(copy)), std::vector<std::string>());
    EXPECT_EQ(check_trace(copy).without_digest, 6 + 2 + 3);
}

TEST_F(Check, RanksMayBeUnknownThroughoutASequence) {
    const fs::path bare = folder / "bare.ponder";
    testing::write_trace(bare, [](TraceWriter& writer) { write_ids(writer, false); });
    EXPECT_EQ(lines(check_trace(bare)), std::vector<std::string>());
}

TEST_F(Check, TokensKeepTheirPromises) {
    const std::string one = "run 1 (first), sequence 0";
    const std::string of_token = " WHERE row = 4294967296 + ";
    struct Case {
        const char* change;
        int token;
        const char* fault;
    };
    for (const auto& [change, token, fault] :
         std::vector<Case>{{"rank = 0", 1, "nll*rank"},
                           {"nll = NULL", 1, "rank*nll"},
                           {"nll = -3.5", 2, "nll"},
                           {"nll = 1, rank = 1", 4, "nll"},
                           {"rank = 51", 1, "rank*vocab_size"},
                           {"id = 50", 1, "id*vocab_size"},
                           {"steps = 3", 1, "steps*max_steps"},
                           {"entropy = 77.0", 0, "entropy*vocab_size"},
                           {"max_probability = 1.5", 0, "max_probability"},
                           {"flops = -1", 0, "flops"},
                           {"text_begin = 2", 1, ""}}) {
        expect("UPDATE token_row SET " + std::string(change) + of_token + std::to_string(token),
               one + ", token " + std::to_string(token) + ": *" + fault);
    }
    expect("UPDATE token_row SET text_end = 16" + of_token + "4", one + ": *token 4 of sequence 0");
    expect("DELETE FROM token_row" + of_token + "2", one + ": *token 2 of sequence 0");
    expect("DELETE FROM token_row" + of_token + "4", one + ": *5 tokens*sequence 0*4");
}

TEST_F(Check, TotalsAgree) {
    const std::string one = "run 1 (first)";
    expect("UPDATE sequence SET nll_sum = 7 WHERE id = 1", one + ", sequence 0: nll_sum*7.0*6.5");
    expect("UPDATE sequence SET steps_sum = 7 WHERE id = 1", one + ", sequence 0: steps_sum*7.0*3.0");
    expect("UPDATE sequence SET scored_bytes = 1 WHERE id = 1", one + ", sequence 0: scored_bytes*1.0*11.0");
    // A run whose counts cannot be does not hide the others.
    const std::string changes = "UPDATE run SET scored_tokens = 9 WHERE id = 1; UPDATE run SET flops_sum = 1 "
                                "WHERE id = 2";
    expect(changes, one + ": *run 1*9*5*1");
    expect(changes, "run 2 (second): flops_sum*1.0*100.0");
    expect("UPDATE run SET scored_tokens = 3 WHERE id = 1", one + ": scored_tokens*3.0*4.0");
    expect("UPDATE run SET flops_sum = 1 WHERE id = 1", one + ": flops_sum*1.0*100.0");
    expect("UPDATE run SET sequences = 2 WHERE id = 1", "run.id 1*sequences");
    expect("UPDATE sequence SET number = 4 WHERE id = 1", "sequence.id 1*number");
}

TEST_F(Check, TextsAndLabelsAreWhole) {
    const std::string one = "run 1 (first), sequence 0";
    expect("UPDATE text SET bytes = CAST('one two four s' AS BLOB) WHERE row = 4294967296",
           "text.row 4294967296");
    expect("DELETE FROM text WHERE row = 4294967296", one + ": *15*sequence 0*0");
    expect("UPDATE text SET row = row + 1 WHERE row = 4294967296", "text.row 4294967297");
    expect("UPDATE label SET text_end = 5 WHERE sequence = 1 AND text_begin = 0", "label*sequence.id 1");
    expect("UPDATE label SET text_end = 16 WHERE sequence = 1 AND text_begin = 4", "label*sequence.id 1");
}

TEST_F(Check, SignalsArePackedAsTheySay) {
    const std::string nll = "run 1 (first), sequence 0, signal nll";
    expect("UPDATE chunk SET first_token = 1 WHERE sequence = 1 AND signal = 1",
           nll + ": *signal nll of sequence 0*[5,3]*F32*5*60");
    expect("UPDATE chunk SET tokens = 4, shape = '[4,3]', data = substr(data, 1, 48) WHERE sequence = 1 AND "
           "signal = 1",
           nll + ": *signal nll of sequence 0*token 5*4");
    expect("UPDATE chunk SET shape = '[5,4]', data = zeroblob(80) WHERE sequence = 1 AND signal = 1",
           nll + ": *step*4*max_steps*2");
    expect("UPDATE signal SET axes = '[\"step\",\"token\"]' WHERE id = 1",
           "signal 1: axes*\"[\"step\",\"token\"]\"");
    expect("UPDATE signal SET name = 'my signal' WHERE id = 3", "signal 3: name*\"my signal\"");
}

TEST_F(Check, StepsThatDidNotRunSaySo) {
    const std::string one = "run 1 (first), sequence 0, signal ";
    expect("UPDATE chunk SET data = zeroblob(60) WHERE sequence = 1 AND signal = 1",
           one + "nll: token 0*NaN");
    expect("UPDATE chunk SET data = zeroblob(60) WHERE sequence = 1 AND signal = 2",
           one + "candidate_ids: token 0*-1");
    expect("UPDATE chunk SET data = CAST(x'ffffffff' || substr(data, 5) AS BLOB) WHERE sequence = 1 AND "
           "signal = 2",
           one + "candidate_ids: token 0*step 0");
    // Of a signal of one's own: all or none. The second place of the first token becomes NaN.
    expect("UPDATE chunk SET data = CAST(substr(data, 1, 4) || x'0000c07f' || substr(data, 9) AS BLOB) WHERE "
           "sequence = 1 AND signal = 3",
           one + "gate: token 0*NaN");
    // Where an exit only chose the read-out, every step ran.
    const std::string all_ran = "UPDATE run SET choices = '{\"kv\": \"full\"}' WHERE id = 1; ";
    EXPECT_EQ(found_after(all_ran + "DELETE FROM chunk WHERE sequence = 1 AND signal = 2; UPDATE chunk SET "
                                    "data = zeroblob(60), crc32 = NULL WHERE sequence = 1 AND signal = 1"),
              std::vector<std::string>());
    expect(all_ran, one + "candidate_ids: token 0*step 1");
}

TEST_F(Check, RunsAndReferencesAreInOrder) {
    expect("UPDATE run SET started = 'yesterday' WHERE id = 1", "run 1: started*\"yesterday\"");
    expect("UPDATE run SET text_digest = 'none' WHERE id = 1", "run 1: text_digest*\"none\"");
    expect("UPDATE run SET versions = 'mine' WHERE id = 1", "run 1: versions*\"mine\"");
    expect("UPDATE run SET notices = '[1]' WHERE id = 1", "run 1: notices*\"[1]\"");
    expect("UPDATE run SET step_unit = 'epoch' WHERE id = 1", "run 1: step_unit*\"epoch\"");
    expect("UPDATE run SET complete = 2 WHERE id = 1", "run 1: complete*\"2\"");
    expect("UPDATE sequence SET run = 9 WHERE id = 1", "sequence.id 1*run");
    expect("UPDATE chunk SET sequence = 2 WHERE id = 1", "chunk.id 1*sequence*signal");
    expect("INSERT INTO fault (run, sequence, time, message) VALUES (1, 5, '', '')",
           "fault.id 1*run*sequence");
    expect("INSERT INTO token_row SELECT row + 429496729600, id, text_begin, text_end, nll, entropy, "
           "max_probability, "
           "rank, steps, flops FROM token_row WHERE row = 4294967296",
           "token_row*sequence.id 101");
    expect("UPDATE label SET sequence = 8 WHERE sequence = 1 AND text_begin = 0", "label*sequence.id 8");
    expect("UPDATE training_point SET quantity = 'los'", "los*training.id 1*training_quantity");
    expect("UPDATE training SET step = 3", "training.id 1*step");
    expect("DROP VIEW token", "view token");
    expect("DELETE FROM vocabulary", "run.id 1*tokenizer_digest*vocabulary");
}

TEST_F(Check, OtherWritersMayLeaveOutWhatASchemaKeeps) {
    // Tables of one's own making, without types and without unique names.
    const std::string plain = "PRAGMA legacy_alter_table=ON; CREATE TABLE plain AS SELECT * FROM run; "
                              "DROP TABLE run; ALTER TABLE plain RENAME TO run; UPDATE run SET name = 'same'";
    expect(plain, "run*STRICT");
    expect(plain, "run.id 1*name");
    expect("DROP TABLE fault", " fault");
    expect("ALTER TABLE run DROP COLUMN device", " run.device");
}

TEST_F(Check, EnoughIsEnoughAndOtherFilesAreRefused) {
    const fs::path copy = folder / "copy.ponder";
    fs::copy_file(path, copy);
    testing::sql(copy, "UPDATE token_row SET flops = -1");
    const TraceCheck few = check_trace(copy, 3);
    EXPECT_EQ(few.faults.size(), 3U);
    EXPECT_TRUE(few.stopped_early);
    EXPECT_FALSE(check_trace(copy).stopped_early);

    write_file_atomically(folder / "text.ponder", std::string(500, 'x'));
    EXPECT_THROW((void)check_trace(folder / "text.ponder"), InputError);
    EXPECT_THROW((void)check_trace(folder / "absent.ponder"), InputError);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_THROW((void)check_trace(path, 10, {}, stop.get_token()), Cancelled);

    std::string bytes = read_file(path);
    for (std::size_t at = 3 * 16384; at < 4 * 16384; ++at) {
        bytes[at] = static_cast<char>(at * 31);
    }
    write_file_atomically(copy, bytes);
    EXPECT_FALSE(check_trace(copy).faults.empty());
}

} // namespace
} // namespace ponderscope
