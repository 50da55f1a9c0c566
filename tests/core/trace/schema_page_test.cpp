// SPDX-License-Identifier: GPL-3.0-or-later
// resources/docs/trace-schema.md is for users: it names every view, and every example in it is run.
#include "core/trace/reader.h"
#include "core/trace/rows.h"
#include "core/trace/schema.h"
#include "core/trace/tools/check.h"
#include "core/trace/writer.h"
#include "tests/core/trace/page_examples.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/half.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sstream>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

/// Tokens [first, first + count), each with as much behind it as stands before it, of \p width entries.
SignalChunk attention_triangle(std::int64_t first, std::int64_t count, std::int64_t width) {
    SignalChunk chunk{first, DType::f16, {count, 1, 1, 2, width}, {}};
    chunk.data.resize(static_cast<std::size_t>(count * 2 * width) * 2);
    for (std::int64_t t = 0; t < count; ++t) {
        for (std::int64_t head = 0; head < 2; ++head) {
            for (std::int64_t back = 0; back <= first + t && back < width; ++back) {
                const std::uint16_t weight =
                    float_to_float16(1.0F / static_cast<float>(first + t + 1 + head));
                std::memcpy(chunk.data.data() + 2 * ((t * 2 + head) * width + back), &weight, sizeof weight);
            }
        }
    }
    return chunk;
}

class SchemaPage : public testing::TraceTest {
protected:
    void SetUp() override {
        TraceWriter writer(path);
        testing::write_sample_run(writer, "first", 1, {300, 20}, 100);
        testing::write_sample_run(writer, "second", 2, {300, 20}, 100);
        RunInfo run = testing::sample_run("third");
        const std::vector<std::string> axes{"token", "step", "layer", "head", "back"};
        writer.begin_run(run,
                         {{signal::attention, axes, "weight", "Sequence attention",
                           "Of layers 2; heads 0, 1 in that order.", DType::f16, SignalStorage::trimmed}});
        writer.begin_sequence("attentive", testing::sample_text(100));
        writer.append(testing::sample_tokens(3, 0, 100, 100),
                      {{signal::attention, attention_triangle(0, 100, 100)}});
        const std::int64_t training = writer.begin_training({}, {{"held_out_nll", "", "nats", "t", "d"}});
        writer.put_points(training, {10, 640, 1.5}, {{"held_out_nll", 0, 3.25}});
        writer.put_fault("The device ran out of memory.");
        writer.leave_run();
        writer.finish();
    }
};

TEST_F(SchemaPage, NamesEveryView) {
    const std::string text = testing::schema_page();
    for (const std::string& view : schema::views()) {
        const std::size_t row = text.find("| `" + view + "` |");
        ASSERT_NE(row, std::string::npos) << view;
        const std::string line = text.substr(row, text.find('\n', row) - row);
        sqlite3* database = nullptr;
        ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
        sqlite3_stmt* statement = nullptr;
        ASSERT_EQ(sqlite3_prepare_v2(database, ("SELECT * FROM " + view).c_str(), -1, &statement, nullptr),
                  SQLITE_OK)
            << sqlite3_errmsg(database);
        for (int column = 0; column < sqlite3_column_count(statement); ++column) {
            EXPECT_NE(line.find(sqlite3_column_name(statement, column)), std::string::npos)
                << view << "." << sqlite3_column_name(statement, column);
        }
        sqlite3_finalize(statement);
        sqlite3_close(database);
    }
    EXPECT_NE(text.find("application_id` is " + std::to_string(schema::application_id)), std::string::npos);
    EXPECT_NE(text.find("version " + std::to_string(schema::version)), std::string::npos);
}

TEST_F(SchemaPage, TheScriptMakesAnEmptyTrace) {
    const fs::path own = folder / "own.ponder";
    testing::sql(own, schema::script::schema);
    EXPECT_TRUE(check_trace(own).faults.empty());
}

template <class Row>
void expect_fields_in_order(std::size_t table, const std::string& name) {
    std::vector<std::string> names;
    for (const schema::Field<Row>& field : schema::fields<Row>()) {
        names.emplace_back(field.name);
    }
    EXPECT_EQ(schema::tables().at(table).name, name);
    EXPECT_EQ(schema::tables().at(table).columns, names);
}

TEST_F(SchemaPage, FieldsHaveTheOrderOfTheColumns) {
    expect_fields_in_order<RunInfo>(0, "run");
    expect_fields_in_order<SequenceInfo>(1, "sequence");
    expect_fields_in_order<SignalInfo>(4, "signal");
    expect_fields_in_order<FaultInfo>(7, "fault");
    expect_fields_in_order<TrainingInfo>(9, "training");
    expect_fields_in_order<TrainingQuantity>(10, "training_quantity");
    std::vector<std::string> names{"row"};
    schema::each_token_field([&](const auto& field) { names.emplace_back(field.name); });
    EXPECT_EQ(schema::tables().at(3).columns, names);
}

TEST_F(SchemaPage, EveryQueryRuns) {
    const std::vector<std::string> queries = testing::page_examples("sql");
    EXPECT_GE(queries.size(), 4U);
    for (const std::string& query : queries) {
        std::string value;
        EXPECT_NO_THROW(value = testing::sql_value(path, query)) << query;
        EXPECT_FALSE(value.empty()) << "no row: " << query;
    }
}

TEST_F(SchemaPage, ViewsSayWhatTheDataIs) {
    const TokenColumns first = testing::sample_tokens(1, 0, 300, 300);
    double sum = 0;
    for (std::size_t i = 0; i + 1 < first.size(); ++i) {
        sum += first.nll[i];
    }
    const auto number = [&](const std::string& query) { return std::stod(testing::sql_value(path, query)); };
    EXPECT_NEAR(number("SELECT mean_nll FROM sequence_summary WHERE run = 1 AND sequence = 0"), sum / 299,
                1e-9);
    EXPECT_NEAR(number("SELECT perplexity FROM sequence_summary WHERE run = 1 AND sequence = 0"),
                std::exp(sum / 299), 1e-6);
    EXPECT_NEAR(number("SELECT sum(nll) FROM token WHERE run = 1 AND sequence = 0"), sum, 1e-9);
    EXPECT_NEAR(number("SELECT nll FROM target WHERE run = 1 AND sequence = 0 AND position = 8"),
                first.nll[7], 1e-6);
    EXPECT_EQ(
        testing::sql_value(path, "SELECT text FROM target WHERE run = 1 AND sequence = 0 AND position = 3"),
        "r\xC3\xBC"
        "be ");
    EXPECT_EQ(testing::sql_value(path, "SELECT text FROM sequence_text WHERE run = 2 AND sequence = 0"),
              testing::sample_text(300));
    EXPECT_EQ(testing::sql_value(
                  path, "SELECT group_concat(text, '') FROM token_text WHERE run = 1 AND sequence = 0"),
              testing::sample_text(300));
    EXPECT_EQ(testing::sql_value(path, "SELECT count(*) FROM token WHERE run = 2"), "320");
}

TEST_F(SchemaPage, TokensAcrossPiecesOfTextAreWhole) {
    const fs::path longer = folder / "b.ponder";
    testing::write_trace(longer, [&](TraceWriter& writer) {
        writer.begin_run(testing::sample_run("r"), {});
        std::string text;
        TokenColumns tokens = testing::sample_tokens(1, 0, 8, 8);
        for (std::size_t i = 0; i < 8;
             ++i) { // 1,500 bytes each: some lie over the ends of pieces at 4,000 and 8,000
            tokens.begin[i] = text.size();
            text +=
                std::string(750, static_cast<char>('a' + i)) + std::string(750, static_cast<char>('A' + i));
            tokens.end[i] = text.size();
        }
        testing::add_sequence(writer, "t", text, tokens, {});
        writer.end_run(1);
    });
    for (int i = 0; i < 8; ++i) {
        const std::string text =
            testing::sql_value(longer, "SELECT text FROM token_text WHERE position = " + std::to_string(i));
        EXPECT_TRUE(text == std::string(750, static_cast<char>('a' + i)) +
                                std::string(750, static_cast<char>('A' + i)))
            << "token " << i << " came back with " << text.size() << " bytes";
    }
}

TEST_F(SchemaPage, EveryPythonExampleRuns) {
    if (!testing::python_has("sqlite3")) {
        GTEST_SKIP() << "python3 with its sqlite3 module is not installed";
    }
    const std::vector<float> nll = to_floats(testing::sample_chunks(1, 0, 300).front().second);
    std::int64_t means = 0;
    for (const testing::PythonExample& example : testing::run_python_examples(path)) {
        EXPECT_EQ(example.code, 0) << example.program << example.output;
        EXPECT_FALSE(example.output.empty()) << example.program;
        EXPECT_EQ(example.output.find("nan"), std::string::npos) << example.output;
        std::istringstream lines(example.output);
        for (std::string line; std::getline(lines, line);) {
            std::int64_t k = 0;
            double mean = 0;
            if (std::sscanf(line.c_str(), "tokens 0 to 300: mean NLL after step %ld: %lf", &k, &mean) == 2) {
                double sum = 0; // of the tokens that got there
                int count = 0;
                for (auto at = static_cast<std::size_t>(k); at < nll.size(); at += testing::sample_steps) {
                    sum += std::isnan(nll[at]) ? 0 : nll[at];
                    count += std::isnan(nll[at]) ? 0 : 1;
                }
                EXPECT_NEAR(mean, sum / count, 1e-4) << line;
                ++means;
            }
        }
    }
    EXPECT_EQ(means, testing::sample_steps);
}

} // namespace
} // namespace ponderscope
