// SPDX-License-Identifier: GPL-3.0-or-later
// `annotate` and what takes annotations up: stats --by, export, check.
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "tests/core/cli/run_program.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace ponderscope {
namespace {

using namespace testing;

class Annotate : public ::testing::Test {
protected:
    void SetUp() override {
        add_sample_run(folder_ / "t.ponder", "one", 1, {400, 300}, 100);
        add_sample_run(folder_ / "t.ponder", "two", 2, {50}, 50);
    }
    [[nodiscard]] std::string trace(const std::string& run = "") const {
        return (folder_ / "t.ponder").string() + (run.empty() ? "" : "#" + run);
    }
    std::string csv(const std::string& text) const {
        write_file_atomically(folder_ / "a.csv", text);
        return (folder_ / "a.csv").string();
    }
    /// Every token of the run "one": a class, a number, and a number that stands for a class.
    std::string whole() const {
        std::string text = "sequence,token,part_of_speech,score,code\n";
        for (int t = 0; t < 700; ++t) {
            text += std::to_string(t < 400 ? 0 : 1) + "," + std::to_string(t < 400 ? t : t - 400) + "," +
                    (t % 4 == 0   ? "VERB"
                     : t % 4 == 1 ? ""
                                  : "NOUN, proper") +
                    "," + std::to_string(t % 50) + "," + std::to_string(t % 3) + "\n";
        }
        for (std::size_t at = 0; (at = text.find("NOUN, proper", at)) != std::string::npos; at += 14) {
            text.replace(at, 12, "\"NOUN, proper\"");
        }
        return csv(text);
    }
    /// The command line is refused and writes no annotations.
    void expect_refusal(const std::vector<std::string>& words, const std::string& says) const {
        const ProgramResult result = run_ponderscope(words);
        EXPECT_EQ(result.code, 2) << result.out;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        EXPECT_NE(result.err.find(says), std::string::npos) << result.err;
        EXPECT_FALSE(std::filesystem::exists(folder_ / "t.ponder.annotations"));
    }
    TemporaryFolder folder_;
};

TEST_F(Annotate, ColumnsAreDerivedFromSteps) {
    const nlohmann::json rows =
        json_of({"annotate", trace("one"), "--derive", "gain=nll@0-nll@last", "--derive", "late=rank@last"});
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0]["name"], "gain");
    EXPECT_GT(rows[0]["tokens_with_value"], 600);
    succeed({"annotate", trace("one"), "--derive", "zero=nll@0", "--from", trace("one")});
}

TEST_F(Annotate, ColumnsThatCannotBeAreRefused) {
    expect_refusal({"annotate", trace("one"), "--derive", "nll@0"}, "[usage.value]");
    expect_refusal({"annotate", trace("one"), "--derive", "x=nll@"}, "[usage.value]");
    expect_refusal({"annotate", trace("one"), "--derive", "x=absent@0"}, "absent");
    expect_refusal({"annotate", trace("one"), "--derive", "x=nll@0-nll@99"}, "nll@99");
    expect_refusal({"annotate", trace("one"), "--derive", "nll=nll@0"}, "nll");
    expect_refusal({"annotate", trace("one"), "--from", trace("two")}, "[usage.missing]");
    expect_refusal({"annotate", trace("one"), "--derive", "x=nll@0", "--from", trace("two")},
                   "[trace.signal]");
    // Nothing is written of what is half right.
    expect_refusal({"annotate", trace("one"), "--csv", whole(), "--derive", "x=absent@0"}, "absent");
}

TEST_F(Annotate, ATableBecomesColumnsThatStatsGroupsBy) {
    const nlohmann::json list = json_of({"annotate", trace("one"), "--csv", whole(), "--category", "code"});
    ASSERT_EQ(list.size(), 3U);
    EXPECT_EQ(list[0]["name"], "code");
    EXPECT_EQ(list[0]["kind"], "category");
    EXPECT_EQ(list[1]["name"], "part_of_speech");
    EXPECT_EQ(list[1]["classes"], nlohmann::json({"VERB", "NOUN, proper"}));
    EXPECT_EQ(list[1]["tokens_with_value"], 525);
    EXPECT_EQ(list[2]["kind"], "number");

    const std::string stats = succeed({"stats", trace("one"), "--by", "part_of_speech", "--by", "score",
                                       "--label-of", "token", "--json", "--replicates", "100"});
    const nlohmann::json report = nlohmann::json::parse(stats);
    ASSERT_EQ(report["by"].size(), 2U);
    const nlohmann::json& classes = report["by"][0]["classes"];
    ASSERT_EQ(classes.size(), 2U);
    // The mean of the tokens themselves.
    const TraceReader reader = TraceReader::open(folder_ / "t.ponder");
    double steps = 0;
    double count = 0;
    for (int s = 0; s < 2; ++s) {
        const TokenColumns tokens = reader.tokens(find_run(reader, "one").id, s);
        for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
            if (t % 4 == 0) { // 400 is a multiple of 4
                steps += tokens.steps[t];
                ++count;
            }
        }
    }
    EXPECT_EQ(classes[0]["name"], "NOUN, proper") << "classes stand by name";
    EXPECT_EQ(classes[1]["name"], "VERB");
    EXPECT_EQ(classes[1]["count"], count);
    EXPECT_NEAR(classes[1]["mean_steps"].get<double>(), steps / count, 1e-9);
    EXPECT_EQ(report["by"][1]["classes"].size(), 5U); // fifths
    const auto& rho = report["steps_correlations"];
    EXPECT_TRUE(std::any_of(rho.begin(), rho.end(), [](const auto& one) { return one["with"] == "score"; }));

    const ProgramResult printed =
        run_ponderscope({"stats", trace("one"), "--by", "part_of_speech", "--replicates", "100", "--csv",
                         (folder_ / "s.csv").string()});
    const std::string without = report["by"][0]["tokens_without"].dump();
    EXPECT_NE(printed.out.find("\n" + without + " "), std::string::npos) << printed.out;
    EXPECT_NE(read_file(folder_ / "s.csv").find("\nby part_of_speech,,VERB,"), std::string::npos);

    const ProgramResult listed = run_ponderscope({"annotate", trace()});
    EXPECT_NE(listed.out.find("t.ponder#one  score  "), std::string::npos) << listed.out;
    const std::string removed =
        succeed({"annotate", trace(), "--run", "one", "--remove", "code", "--remove", "score"});
    EXPECT_EQ(removed.find("score"), std::string::npos) << removed;
}

TEST_F(Annotate, NamesFromStrangersDoNotReachTheTerminal) {
    // An escape sequence, a mark of direction and a script; as names of runs, texts, classes and groups.
    const std::string name = "<script>x</script>\x1B[31m\xE2\x80\xAEgnp\x7F\xC2\x9B";
    const std::filesystem::path path = folder_ / "strange.ponder";
    {
        TraceWriter writer(path);
        for (int i = 0; i < 2; ++i) {
            RunInfo run = sample_run(name);
            run.method = name;
            run.scoring = name + std::to_string(i); // a notice names what differs
            run.notices = nlohmann::json::array({name}).dump();
            writer.begin_run(run, sample_signals());
            writer.begin_sequence(name, sample_text(300), name);
            writer.put_labels({{0, 900, name}, {900, 1000, "other"}});
            writer.append(sample_tokens(5, 0, 300, 300), sample_chunks(5, 0, 300));
            writer.end_sequence();
            writer.end_run(1);
        }
        writer.finish();
    }
    const std::string strange = path.string();
    const std::vector<std::vector<std::string>> verbs{
        {"inspect", strange},
        {"stats", strange + "#1", "--against", strange + "#2", "--replicates", "100"},
        {"stats", strange + "#1", "--by", "none"},
        {"compare", strange, "--replicates", "100"},
        {"policy", strange + "#1", "--policy", "entropy:theta=2"},
        {"policy", strange + "#3", "--policy", "entropy:theta=2"},
        {"page", strange + "#1", "-o", (folder_ / "p.html").string()},
        {"referee", strange + "#1", "--steps", "0.5", "--replicates", "100", "--tex",
         (folder_ / "t.tex").string()},
        {"annotate", strange + "#1", "--csv", csv("token,tag\n1,x\n")},
        {"annotate", strange + "#1", "--remove", name},
        {"annotate", strange},
        {"check", strange},
        {"export", strange, "-o", (folder_ / "tables").string()},
        {"merge", strange, "-o", (folder_ / "merged.ponder").string()},
    };
    for (const std::vector<std::string>& verb : verbs) {
        const ProgramResult result = run_ponderscope(verb);
        const std::string said = result.out + result.err;
        EXPECT_LT(result.code, 3) << verb[0] << ": " << said;
        EXPECT_FALSE(said.empty());
        const auto control = std::find_if(said.begin(), said.end(), [](char c) {
            const auto byte = static_cast<unsigned char>(c);
            return (byte < 0x20 && c != '\n') || byte == 0x7F;
        });
        EXPECT_TRUE(control == said.end()) << verb[0] << " prints control characters:\n" << said;
        for (const char* unseen : {"\xE2\x80\xAE", "\xC2\x9B"}) {
            EXPECT_EQ(said.find(unseen), std::string::npos) << verb[0] << ":\n" << said;
        }
    }
    // In TeX a name is a comment, of one line whatever is in it.
    EXPECT_EQ(read_file(folder_ / "t.tex").find('\x1B'), std::string::npos);
}

TEST_F(Annotate, BytesOfTheTextFindTheirTokens) {
    const TraceReader reader = TraceReader::open(folder_ / "t.ponder");
    const RunInfo run = find_run(reader, "one");
    const TokenColumns tokens = reader.tokens(run.id, 0);
    succeed({"annotate", trace("one"), "--csv",
             csv("document,begin,end,name\n0," + std::to_string(tokens.begin[5]) + "," +
                 std::to_string(tokens.end[7]) + ",person\n")});
    const auto annotations = AnnotationReader::beside(folder_ / "t.ponder");
    const std::vector<double> values = annotations->values(annotations->all()[0], 0, 0, 400);
    for (std::size_t t = 0; t < values.size(); ++t) {
        EXPECT_EQ(!std::isnan(values[t]), t >= 5 && t <= 7) << t;
    }
    // The bytes say it where a token's number stands beside them.
    const nlohmann::json both =
        json_of({"annotate", trace("one"), "--csv",
                 csv("sequence,token,begin,end,name\n0,9," + std::to_string(tokens.begin[5]) + "," +
                     std::to_string(tokens.end[5]) + ",person\n0,9," + std::to_string(tokens.begin[6]) + "," +
                     std::to_string(tokens.end[6]) + ",place\n")});
    EXPECT_EQ(both[0]["tokens_with_value"], 2);
}

TEST_F(Annotate, NumbersMayBeWrittenInAnyCommonWay) {
    const auto annotated = [&](const std::string& fields, const char* option = nullptr) {
        std::istringstream lines(fields);
        std::string text = "token,score\n";
        std::string line;
        for (int t = 0; std::getline(lines, line); ++t) {
            text += std::to_string(t) + "," + line + "\n";
        }
        std::vector<std::string> arguments{"annotate", trace("two"), "--csv", csv(text), "--json"};
        if (option != nullptr) {
            arguments.insert(arguments.end(), {option, "score"});
        }
        return run_ponderscope(arguments);
    };
    const auto values = [&] {
        const auto there = AnnotationReader::beside(folder_ / "t.ponder");
        return there->values(there->all()[0], 0, 0, 8);
    };
    ProgramResult made = annotated("0.5\nnan\n+0.7\n 3\n-NaN\n\t1e2 \n  \n-4");
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(nlohmann::json::parse(made.out)[0]["kind"], "number") << made.out;
    EXPECT_TRUE(made.err.empty()) << made.err;
    const std::vector<double> read = values();
    const std::vector<double> expected{0.5, NAN, 0.7, 3, NAN, 100, NAN, -4};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(read[i] == expected[i] || (std::isnan(read[i]) && std::isnan(expected[i]))) << i;
    }
    // The same as classes: no class for what is absent.
    made = annotated("1\nnan\n 1\n2", "--category");
    EXPECT_EQ(nlohmann::json::parse(made.out)[0]["classes"], nlohmann::json({"1", "2"})) << made.out;
    // A word makes a category, and where there are numbers it is said which.
    made = annotated("0.5\nn/a\nnan\n0.5");
    EXPECT_EQ(nlohmann::json::parse(made.out)[0]["classes"], nlohmann::json({"0.5", "n/a", "nan"}))
        << made.out;
    EXPECT_NE(made.err.find("a.csv: line 3: \"n/a\""), std::string::npos) << made.err;
    EXPECT_TRUE(annotated("VERB\n\nNOUN").err.empty());
    for (const char* infinite : {"1e400", "inf", "-Infinity"}) {
        made = annotated("0.5\n" + std::string(infinite) + "\n2");
        EXPECT_EQ(made.code, 2);
        EXPECT_NE(made.err.find("line 3: "), std::string::npos) << made.err;
        EXPECT_TRUE(made.err.ends_with("[text.line]\n")) << made.err;
    }
}

TEST_F(Annotate, WrongTablesAreRefused) {
    const auto refused = [&](const std::string& text, const std::string& says) {
        expect_refusal({"annotate", trace("one"), "--csv", csv(text)}, says);
    };
    refused("", "[annotation.table]");
    refused("sequence,token\n0,1\n", "[annotation.table]");
    refused("sequence,token,nll\n0,1,2\n", "[annotation.table]");
    refused("sequence,token,tag\n0,1,\x1B[31mred\n", "U+001B");
    refused("sequence,token,tag\n0,400,x\n", "[trace.signal]");
    refused("sequence,token,tag\n7,0,x\n", "\"7\"");
    refused("sequence,token,tag\n0,1,x\n0,1,y\n", "lines 2 and 3");
    refused("sequence,token,tag\n0,1,\n", "[annotation.table]");
    refused("sequence,token,tag,Tag\n0,1,x,y\n", "[annotation.table]");
    refused("token,tag\n1,x\n", "[trace.signal]");
    expect_refusal({"annotate", trace(), "--csv", csv("token,tag\n1,x\n")}, "one, two");
    expect_refusal({"annotate", trace("one"), "--run", "two"}, "[usage.conflict]");
    expect_refusal({"annotate", trace("two"), "--remove", "tag"}, "[trace.signal]");
    expect_refusal({"annotate", trace("two"), "--csv", csv("token,tag\n1,x\n"), "--category", "other"},
                   "[annotation.table]");
    expect_refusal({"stats", trace("two"), "--by", "tag"}, "[trace.signal]");
    expect_refusal({"annotate", trace("two"), "--category", "tag"}, "[usage.missing]");
    // Nothing is written where a part of the line is wrong.
    expect_refusal({"annotate", trace("two"), "--csv", csv("token,tag\n1,x\n"), "--remove", "nosuch"},
                   "[usage.conflict]");
}

} // namespace
} // namespace ponderscope
