// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/checkpoint/safetensors.h"
#include "tests/core/cli/run_program.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ponderscope {
namespace {

using testing::ProgramResult;
using testing::run_ponderscope;
using testing::TemporaryFolder;
using testing::TinyCheckpoint;

constexpr const char* text =
    "The lamp was lit, the lamp was out, and the lamp was lit again before the tide had turned.";

class CommandLine : public ::testing::Test {
protected:
    void SetUp() override {
        TinyCheckpoint vanilla;
        vanilla.write(folder_ / "vanilla");
        TinyCheckpoint pondering;
        pondering.pondering_steps = 3;
        pondering.seed = 2;
        pondering.write(folder_ / "ponderlm");
        write_file_atomically(folder_ / "text.txt", text);
    }

    std::string at(const std::string& name) const { return (folder_ / name).string(); }

    ProgramResult record(const std::string& model, const std::string& trace,
                         std::vector<std::string> more = {}) const {
        std::vector<std::string> arguments{"record", at(model), "--text", at("text.txt"),
                                           "-o",     at(trace), "--json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_ponderscope(arguments);
    }

    TemporaryFolder folder_;
};

nlohmann::json parse(const std::string& out) {
    return nlohmann::json::parse(out);
}

TEST_F(CommandLine, EveryVerbHasHelpWithAnExample) {
    for (const char* verb : {"record", "logits", "verify", "inspect", "tokenize", "compare", "policy",
                             "referee", "stats", "train", "merge", "export", "figure", "open"}) {
        const ProgramResult result = run_ponderscope({verb, "--help"});
        EXPECT_EQ(result.code, 0) << verb;
        EXPECT_NE(result.out.find("Example:\n  ponderscope " + std::string(verb)), std::string::npos)
            << verb << "\n"
            << result.out;
    }
}

TEST_F(CommandLine, RecordInspectCompareExportMerge) {
    const ProgramResult first = record("vanilla", "both.ponder");
    ASSERT_EQ(first.code, 0) << first.err;
    const nlohmann::json run = parse(first.out);
    EXPECT_EQ(run.at("run"), "vanilla");
    EXPECT_EQ(run.at("tokens"), std::strlen(text));
    EXPECT_EQ(run.at("scored_tokens"), std::strlen(text) - 1);
    EXPECT_TRUE(run.at("complete"));
    ASSERT_EQ(record("ponderlm", "both.ponder").code, 0);

    const ProgramResult inspected = run_ponderscope({"inspect", at("both.ponder"), "--json", "--check"});
    ASSERT_EQ(inspected.code, 0) << inspected.err;
    const nlohmann::json about = parse(inspected.out);
    ASSERT_EQ(about.at("runs").size(), 2U);
    EXPECT_EQ(about.at("runs")[1].at("method"), "ponderlm");
    EXPECT_DOUBLE_EQ(about.at("runs")[1].at("mean_steps").get<double>(), 3.0);
    EXPECT_NEAR(about.at("runs")[0].at("mean_nll").get<double>(), run.at("mean_nll").get<double>(), 1e-6);

    const ProgramResult compared =
        run_ponderscope({"compare", at("both.ponder#vanilla"), at("both.ponder#ponderlm"), "--json"});
    ASSERT_EQ(compared.code, 0) << compared.err;
    const nlohmann::json comparison = parse(compared.out);
    EXPECT_EQ(comparison.at("pairs").at(0).at("tokens"), std::strlen(text) - 1);

    ASSERT_EQ(run_ponderscope({"export", at("both.ponder"), "-o", at("tables")}).code, 0);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "tables" / "tokens.csv"));

    ASSERT_EQ(record("vanilla", "other.ponder").code, 0);
    const ProgramResult merged =
        run_ponderscope({"merge", at("both.ponder"), at("other.ponder"), "-o", at("all.ponder")});
    ASSERT_EQ(merged.code, 0) << merged.err;
    EXPECT_EQ(parse(run_ponderscope({"inspect", at("all.ponder"), "--json"}).out).at("runs").size(), 3U);
}

TEST_F(CommandLine, ProgressAsJsonIsOneObjectALine) {
    const ProgramResult result =
        record("ponderlm", "progress.ponder", {"--progress", "json", "--context", "16", "--batch", "1"});
    ASSERT_EQ(result.code, 0) << result.err;
    std::size_t lines = 0;
    std::int64_t last = 0;
    for (std::size_t begin = 0; begin < result.err.size();) {
        const std::size_t end = result.err.find('\n', begin);
        ASSERT_NE(end, std::string::npos);
        const nlohmann::json line = parse(result.err.substr(begin, end - begin));
        if (line.at("activity") == "recording") {
            EXPECT_EQ(line.at("total"), std::strlen(text));
            last = line.at("done").get<std::int64_t>();
        }
        ++lines;
        begin = end + 1;
    }
    EXPECT_GT(lines, 0U);
    EXPECT_EQ(last, static_cast<std::int64_t>(std::strlen(text)));
}

TEST_F(CommandLine, TokenizeAndBack) {
    const ProgramResult ids = run_ponderscope({"tokenize", at("vanilla"), "--text", at("text.txt")});
    ASSERT_EQ(ids.code, 0) << ids.err;
    EXPECT_EQ(parse(ids.out).at(0).size(), std::strlen(text));
    write_file_atomically(folder_ / "ids.json", ids.out);
    const ProgramResult back = run_ponderscope({"tokenize", at("vanilla"), "--decode", at("ids.json")});
    ASSERT_EQ(back.code, 0) << back.err;
    EXPECT_EQ(back.out, std::string(text) + "\n");
}

TEST_F(CommandLine, LogitsOfRowsOfDifferentLengthsAreThoseOfEachAlone) {
    const auto logits = [this](const std::string& ids, const std::string& out) {
        write_file_atomically(folder_ / "ids.json", ids);
        const ProgramResult result =
            run_ponderscope({"logits", at("ponderlm"), "--ids", at("ids.json"), "-o", at(out)});
        EXPECT_EQ(result.code, 0) << result.err;
        return SafetensorsFile::open(folder_ / out);
    };
    const SafetensorsFile together = logits("[[1, 2, 3, 4, 5], [7, 8]]", "together.safetensors");
    const SafetensorsFile alone = logits("[[7, 8]]", "alone.safetensors");
    ASSERT_EQ(together.find("logits")->shape, (std::vector<std::int64_t>{2, 5, 256}));
    ASSERT_EQ(alone.find("logits")->shape, (std::vector<std::int64_t>{1, 2, 256}));
    ASSERT_NE(together.find("lengths"), nullptr);
    std::vector<float> a(2 * 256);
    std::vector<float> b(2 * 256);
    std::memcpy(a.data(), together.find("logits")->bytes.data() + std::size_t{5} * 256 * 4, a.size() * 4);
    std::memcpy(b.data(), alone.find("logits")->bytes.data(), b.size() * 4);
    for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_NEAR(a[i], b[i], 1e-5F);
    }
    float padding = 0;
    std::memcpy(&padding, together.find("logits")->bytes.data() + (std::size_t{5} * 256 + 2 * 256) * 4, 4);
    EXPECT_TRUE(std::isnan(padding));
}

TEST_F(CommandLine, GeneratedTokensAreRecordedLikeAnyOthers) {
    const ProgramResult result =
        run_ponderscope({"record", at("ponderlm"), "--prompt", "The lamp", "--generate", "12", "-o",
                         at("generated.ponder"), "--json"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(parse(result.out).at("tokens"), 20);
    const ProgramResult again = run_ponderscope({"record", at("ponderlm"), "--prompt", "The lamp",
                                                 "--generate", "12", "-o", at("again.ponder"), "--json"});
    EXPECT_EQ(parse(result.out).at("mean_nll"), parse(again.out).at("mean_nll")) << "greedy is deterministic";
}

TEST_F(CommandLine, VerifyFailsWithCodeOneWhenNumbersDiffer) {
    // Our own logits as the reference, once as they are and once with one of them moved.
    write_file_atomically(folder_ / "ids.json", "[[5, 6, 7, 8]]");
    const std::filesystem::path reference = folder_ / "vanilla";
    ASSERT_EQ(
        run_ponderscope({"logits", at("vanilla"), "--ids", at("ids.json"), "-o", at("out.safetensors")}).code,
        0);
    const SafetensorsFile out = SafetensorsFile::open(folder_ / "out.safetensors");
    const std::vector<std::int64_t> ids{5, 6, 7, 8};
    const auto write_case = [&](float moved) {
        std::vector<std::byte> logits(out.find("logits")->bytes.begin(), out.find("logits")->bytes.end());
        float value = 0;
        std::memcpy(&value, logits.data(), 4);
        value += moved;
        std::memcpy(logits.data(), &value, 4);
        TensorView input{"input_ids", DType::i64, {1, 4}, std::as_bytes(std::span(ids))};
        TensorView expected{"logits", DType::f32, out.find("logits")->shape, logits};
        write_safetensors(reference / "golden.safetensors", {input, expected});
        write_file_atomically(reference / "case.json", R"({"method": "vanilla", "tolerance": 1e-4})");
        return run_ponderscope({"verify", reference.string()});
    };
    EXPECT_EQ(write_case(0).code, 0);
    EXPECT_EQ(write_case(5e-5F).code, 0);
    const ProgramResult wrong = write_case(2e-4F);
    EXPECT_EQ(wrong.code, 1);
    EXPECT_NE(wrong.out.find("FAIL  vanilla"), std::string::npos) << wrong.out;
    EXPECT_NE(wrong.out.find("BAD logits"), std::string::npos) << wrong.out;
}

} // namespace
} // namespace ponderscope
