// SPDX-License-Identifier: GPL-3.0-or-later
// Processes that train together, and processes that record together and compare beforehand what they were
// given: started at the same time, as torchrun and mpirun start them.
#include "core/base/files.h"
#include "tests/core/cli/run_program.h"
#include "tests/core/train/small_recipe.h"
#include "tests/support/launch.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace ponderscope {
namespace {

using nlohmann::json;
using testing::free_port;
using testing::run_ponderscope;

/// In the place of a process: the program, with its words in FOLDER/err.RANK.
int become(const std::vector<std::string>& arguments, const std::filesystem::path& folder, int rank) {
    std::vector<char*> line{const_cast<char*>(PONDERSCOPE_PROGRAM)};
    for (const std::string& argument : arguments) {
        line.push_back(const_cast<char*>(argument.c_str()));
    }
    line.push_back(nullptr);
    const int words =
        ::open((folder / ("err." + std::to_string(rank))).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(words, 2);
    ::dup2(words, 1);
    ::execv(line[0], line.data());
    return 127;
}

class Worlds : public ::testing::Test {
protected:
    testing::TemporaryFolder folder;

    [[nodiscard]] std::string words(int rank) const {
        return read_file(folder / ("err." + std::to_string(rank)));
    }
    /// Runs the same line in all ranks; those of \p other in the last one.
    std::vector<int> in_world(int size, const std::vector<std::string>& line,
                              const std::vector<std::string>& other = {}) const {
        return testing::run_ranks(size, free_port(), [&](int rank) {
            return become(rank + 1 == size && !other.empty() ? other : line, folder.path(), rank);
        });
    }
    void expect_done(const std::vector<int>& codes) const {
        for (std::size_t rank = 0; rank < codes.size(); ++rank) {
            EXPECT_EQ(codes[rank], 0) << "rank " << rank << ": " << words(static_cast<int>(rank));
        }
    }
};

/// A training whose steps have six windows, in forwards of two.
json recipe_of(const std::string& method) {
    json recipe = testing::small_recipe();
    recipe["training"].update({{"steps", 8}, {"batch", 2}, {"accumulation", 3}});
    recipe["texts"]["held_out_fraction"] = 0.2;
    recipe["evaluation"] = {{"every", 4}, {"windows", 4}};
    recipe["log"] = {{"every", 1}, {"snapshots", 1}, {"snapshot_tokens", 32}};
    recipe["checkpoint"] = {{"every", 2}};
    if (method != "vanilla") {
        recipe["model"]["pondering"] = {{"method", method}, {"max_steps", 2}, {"embed_scale", "sqrt_d"}};
        recipe["penalty"] = {{"lambda", 0.1}};
    }
    if (method == "adaponderlm") {
        recipe["penalty"].update({{"k_max", 0.3}, {"ramp_start", 0}, {"ramp_end", 2}});
    }
    return recipe;
}

/// Columns of log.csv that do not tell the time, as numbers; NaN where empty.
std::vector<std::vector<double>> curves(const std::string& output) {
    std::vector<std::vector<double>> rows;
    std::istringstream lines(read_file(std::filesystem::path(output) / "log.csv"));
    std::string line;
    std::getline(
        lines, line); // step,tokens,loss,learning_rate,gradient_norm,held_out_nll,penalty,mean_steps,seconds
    while (std::getline(lines, line)) {
        std::istringstream cells(line.substr(0, line.rfind(',')));
        rows.emplace_back();
        for (std::string cell; std::getline(cells, cell, ',');) {
            rows.back().push_back(cell.empty() ? NAN : std::stod(cell));
        }
    }
    return rows;
}

void expect_same_curves(const std::string& one, const std::string& other) {
    const auto a = curves(one);
    const auto b = curves(other);
    ASSERT_EQ(a.size(), b.size());
    ASSERT_FALSE(a.empty());
    for (std::size_t row = 0; row < a.size(); ++row) {
        ASSERT_EQ(a[row].size(), b[row].size());
        for (std::size_t column = 0; column < a[row].size(); ++column) {
            if (!std::isnan(a[row][column])) {
                EXPECT_NEAR(a[row][column], b[row][column], 2e-5 * std::max(1.0, std::abs(a[row][column])))
                    << "row " << row << " column " << column;
            }
        }
    }
}

class Trained : public Worlds, public ::testing::WithParamInterface<std::string> {
protected:
    std::string recipe;
    void SetUp() override { recipe = testing::write_small_recipe(folder.path(), recipe_of(GetParam())); }
    [[nodiscard]] std::vector<std::string> line(const std::string& output) const {
        return {"train", recipe, "-o", output};
    }
};

TEST_P(Trained, ByAnyWorldHasTheCurvesOfOneProcess) {
    const std::string alone = folder / "alone";
    ASSERT_EQ(run_ponderscope(line(alone)).code, 0);
    // Four take two, one, two and one windows of a step.
    for (const int size : {2, 4}) {
        const std::string together = folder / ("of" + std::to_string(size));
        expect_done(in_world(size, line(together)));
        expect_same_curves(alone, together);
        EXPECT_EQ(json::parse(read_file(together + "/training.json")).at("made_with").at("processes"), size);
    }
    if (testing::has_mpirun()) {
        const std::string by_mpi = folder / "mpi";
        EXPECT_EQ(std::system((testing::mpirun(2) + " " + PONDERSCOPE_PROGRAM + " train " + recipe + " -o " +
                               by_mpi + " >" + (folder / "said").string() + " 2>&1")
                                  .c_str()),
                  0)
            << read_file(folder / "said");
        expect_same_curves(alone, by_mpi);
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, Trained, ::testing::Values("vanilla", "adaponderlm", "ponderlm3"),
                         [](const auto& test) { return test.param; });

class Training : public Worlds {
protected:
    std::string recipe;
    void SetUp() override { recipe = testing::write_small_recipe(folder.path(), recipe_of("vanilla")); }
};

TEST_F(Training, ThatLostARankIsResumedByAWorldOfAnotherSize) {
    const std::string alone = folder / "alone";
    const std::vector<std::string> slow{"--set", "training.steps=60"};
    std::vector<std::string> line{"train", recipe, "-o", alone, slow[0], slow[1]};
    ASSERT_EQ(run_ponderscope(line).code, 0);
    const char* wanted = std::getenv("PONDERSCOPE_KILLS");
    const int kills = wanted != nullptr ? std::atoi(wanted) : 2;
    int in_the_middle = 0;
    std::srand(7);
    for (int kill = 0; kill < kills; ++kill) {
        const std::string output = folder / ("killed" + std::to_string(kill));
        line[3] = output;
        const auto ranks =
            testing::start_ranks(2, free_port(), [&](int rank) { return become(line, folder.path(), rank); });
        // Once it trains: the log has rows.
        const int rows = 2 + std::rand() % 40;
        const auto lines_of_log = [&] {
            std::error_code error;
            if (!std::filesystem::exists(output + "/log.csv", error)) {
                return std::ptrdiff_t{0};
            }
            const std::string log = read_file(output + "/log.csv");
            return std::count(log.begin(), log.end(), '\n');
        };
        for (int wait = 0; wait < 6000 && lines_of_log() < rows; ++wait) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        ::kill(ranks[static_cast<std::size_t>(std::rand() % 2)], SIGKILL);
        const auto codes = testing::wait_for(ranks);
        const bool both_ended_badly = codes[0] != 0 && codes[1] != 0;
        in_the_middle += both_ended_badly ? 1 : 0;
        if (both_ended_badly) {
            const int other = codes[0] == 128 + SIGKILL ? 1 : 0;
            EXPECT_NE(words(other).find("one of them ended"), std::string::npos) << words(other);
        }
        auto again = line;
        again.emplace_back("--resume");
        if (kill % 2 == 0) {
            const auto resumed = run_ponderscope(again);
            ASSERT_EQ(resumed.code, 0) << resumed.err;
        } else {
            expect_done(in_world(3, again));
        }
        expect_same_curves(alone, output);
    }
    std::cout << kills << " kills, " << in_the_middle << " of them into a training\n";
    EXPECT_GT(in_the_middle, 0);
}

TEST_F(Training, OfRanksThatWereNotStartedAlikeIsRefusedBeforehand) {
    const std::string output = folder / "out";
    const std::vector<std::string> line{"train", recipe, "-o", output};
    auto other = line;
    other.insert(other.end(), {"--set", "training.seed=8"});
    EXPECT_EQ(in_world(3, line, other), (std::vector<int>{2, 2, 2}));
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_NE(words(rank).find("training.seed 7 at rank 0, and 8 at rank 2 of 3"), std::string::npos)
            << words(rank);
    }
    EXPECT_FALSE(std::filesystem::exists(output));
    // What only one of them was given, whichever it is; and a recipe that only one can read.
    other = line;
    other.insert(other.end(), {"--set", "training.shifted=false"});
    for (const auto& [most, last] : {std::pair{line, other}, {other, line}}) {
        EXPECT_EQ(in_world(2, most, last), (std::vector<int>{2, 2}));
        EXPECT_NE(words(0).find("not started alike: the recipe's training.shifted "), std::string::npos)
            << words(0);
    }
    other = line;
    other[1] = folder / "nowhere.json";
    EXPECT_EQ(in_world(2, line, other), (std::vector<int>{2, 2}));
    EXPECT_NE(words(0).find("Rank 1 of 2 ended: "), std::string::npos) << words(0);
    EXPECT_FALSE(std::filesystem::exists(output));
    // A text that one of them has not got is said by all.
    std::filesystem::create_directory(folder / "elsewhere");
    other = line;
    other.insert(other.end(), {"--texts", folder / "elsewhere"});
    EXPECT_EQ(in_world(2, line, other), (std::vector<int>{2, 2}));
    EXPECT_NE(words(0).find("Rank 1 of 2 ended: "), std::string::npos) << words(0);
    EXPECT_EQ(in_world(7, line), std::vector<int>(7, 2));
    EXPECT_NE(words(0).find("as there are processes, 7, found 6"), std::string::npos) << words(0);
    EXPECT_FALSE(std::filesystem::exists(output));
    // Nobody says where the others are.
    EXPECT_EQ(testing::run_ranks(1, 0,
                                 [&](int rank) {
                                     ::setenv("WORLD_SIZE", "2", 1);
                                     return become(line, folder.path(), rank);
                                 }),
              std::vector<int>{2});
    EXPECT_NE(words(0).find("must talk to each other, and they cannot"), std::string::npos) << words(0);
}

TEST_F(Training, OnTokenShardsIsThatOnTheirTexts) {
    json document = recipe_of("vanilla");
    document["texts"].erase("held_out_fraction");
    document["evaluation"] = nullptr;
    recipe = testing::write_small_recipe(folder.path(), document);
    const std::string tokenizer = document["tokenizer"];
    const std::string shards = folder / "shards";
    const auto made = run_ponderscope({"tokenize", tokenizer, "--text", folder / "a.txt", folder / "b.txt",
                                       "--document-end", "<|endoftext|>", "--shard-tokens", "100", "--shards",
                                       shards, "--json"});
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_GT(json::parse(made.out).at("shards"), 3);
    ASSERT_EQ(run_ponderscope({"train", recipe, "-o", folder / "texts"}).code, 0);
    const auto trained =
        run_ponderscope({"train", recipe, "-o", folder / "mapped", "--set", "texts.shards=shards", "--set",
                         "texts.train=null", "--set", "texts.document_end=null"});
    ASSERT_EQ(trained.code, 0) << trained.err;
    EXPECT_TRUE(read_file(folder / "texts" / "model.safetensors") ==
                read_file(folder / "mapped" / "model.safetensors"));
    // The same texts as JSON Lines are the same tokens.
    std::string lines;
    for (const char* name : {"a.txt", "b.txt"}) {
        lines += json{{"text", read_file(folder / name)}}.dump() + "\n";
    }
    write_file_atomically(folder / "c.jsonl", lines);
    ASSERT_EQ(run_ponderscope({"tokenize", tokenizer, "--jsonl", folder / "c.jsonl", "--document-end",
                               "<|endoftext|>", "--shard-tokens", "100", "--shards", folder / "lines"})
                  .code,
              0);
    EXPECT_EQ(json::parse(read_file(folder / "lines" / "shards.json")).at("shards"),
              json::parse(read_file(shards + "/shards.json")).at("shards"));
    // Ids may not go beyond the tokenizer's, whatever the list of shards says.
    const std::string list = read_file(shards + "/shards.json");
    json wrong = json::parse(list);
    wrong["vocab_size"] = wrong["vocab_size"].get<int>() + 1;
    write_file_atomically(shards + "/shards.json", wrong.dump());
    const auto refused =
        run_ponderscope({"train", recipe, "-o", folder / "refused", "--set", "texts.shards=shards", "--set",
                         "texts.train=null", "--set", "texts.document_end=null"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("expected the vocab_size of the tokenizer"), std::string::npos) << refused.err;
    write_file_atomically(shards + "/shards.json", list);
    const auto again =
        run_ponderscope({"tokenize", tokenizer, "--text", folder / "a.txt", "--shards", shards});
    EXPECT_EQ(again.code, 2);
    EXPECT_NE(again.err.find("a new folder or an empty one"), std::string::npos) << again.err;
    const auto both =
        run_ponderscope({"train", recipe, "-o", folder / "both", "--set", "texts.shards=shards"});
    EXPECT_EQ(both.code, 2);
    EXPECT_NE(both.err.find("texts.shards and texts.train"), std::string::npos) << both.err;
}

class Recording : public Worlds {
protected:
    std::string model = folder / "model";
    std::string corpus = folder / "corpus.jsonl";
    std::string trace = folder / "t.ponder";
    void SetUp() override {
        testing::TinyCheckpoint().write(model);
        std::string lines;
        for (int i = 0; i < 12; ++i) {
            lines += json{{"text", "Line " + std::to_string(i) + " of a small corpus."}}.dump() + "\n";
        }
        write_file_atomically(corpus, lines);
    }
    [[nodiscard]] std::vector<std::string> line(const std::vector<std::string>& more = {}) const {
        std::vector<std::string> all{"record", model, "--jsonl", corpus, "--context", "32", "-o", trace};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    [[nodiscard]] int shards() const {
        int count = 0;
        for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
            count += entry.path().extension() == ".ponder" ? 1 : 0;
        }
        return count;
    }
};

TEST_F(Recording, ComparesBeforehandWhatTheProcessesWereGiven) {
    const auto refused = [&](const std::vector<std::string>& other, const std::string& why) {
        EXPECT_EQ(in_world(3, line(), other), (std::vector<int>{2, 2, 2}));
        for (int rank = 0; rank < 3; ++rank) {
            EXPECT_NE(words(rank).find(why), std::string::npos) << words(rank);
        }
        EXPECT_EQ(shards(), 0);
    };
    refused(line({"--seed", "4"}), "--seed 0 at rank 0, and 4 at rank 2 of 3; give all of them the same.");
    refused(line({"--batch", "3"}), "--batch 8 at rank 0, and 3 at rank 2 of 3");
    const std::string other_corpus = folder / "other.jsonl";
    write_file_atomically(other_corpus, read_file(corpus) + json{{"text", "One more line."}}.dump() + "\n");
    auto other = line();
    other[3] = other_corpus;
    refused(other, "the texts' digest ");
    testing::TinyCheckpoint second;
    second.seed = 2;
    second.write(folder / "second");
    other = line();
    other[1] = folder / "second";
    refused(other, "the checkpoint's digest ");
}

TEST_F(Recording, OfARankThatCannotBeginIsSaidByAll) {
    auto other = line();
    other[3] = folder / "nowhere.jsonl";
    EXPECT_EQ(in_world(3, line(), other), (std::vector<int>{2, 2, 2}));
    EXPECT_NE(words(0).find("Rank 2 of 3 ended: "), std::string::npos) << words(0);
    EXPECT_NE(words(1).find("nowhere.jsonl"), std::string::npos) << words(1);
    EXPECT_EQ(shards(), 0);
}

TEST_F(Recording, OfAWorldThatTalksIsThatOfOneThatDoesNot) {
    expect_done(in_world(2, line()));
    EXPECT_NE(words(0).find("torchrun  2 processes  c10d"), std::string::npos) << words(0);
    EXPECT_EQ(shards(), 2);
    ASSERT_EQ(run_ponderscope({"merge", "--join", folder / "t.r*", "-o", folder / "joined.ponder"}).code, 0);
    // More processes than shards that are to be resumed.
    expect_done(in_world(3, line({"--resume"})));
    const std::string alone = folder / "alone.ponder";
    auto single = line();
    single[7] = alone;
    ASSERT_EQ(run_ponderscope(single).code, 0);
    for (const char* name : {"alone", "joined"}) {
        ASSERT_EQ(
            run_ponderscope({"export", folder / (std::string(name) + ".ponder"), "-o", folder / name}).code,
            0);
    }
    EXPECT_EQ(read_file(folder / "alone" / "tokens.csv"), read_file(folder / "joined" / "tokens.csv"));
}

TEST_F(Recording, NamesARankThatNeverCame) {
    EXPECT_EQ(testing::run_ranks(
                  3, free_port(),
                  [&](int rank) {
                      return rank == 1 ? 0 : become(line({"--world-timeout", "4"}), folder.path(), rank);
                  }),
              (std::vector<int>{2, 0, 2}));
    EXPECT_NE(words(0).find("Rank 1 of 3 did not come within 4 s"), std::string::npos) << words(0);
    EXPECT_EQ(shards(), 0);
    const testing::Listener taken;
    EXPECT_EQ(testing::run_ranks(1, taken.port(),
                                 [&](int rank) {
                                     ::setenv("WORLD_SIZE", "2", 1);
                                     return become(line(), folder.path(), rank);
                                 }),
              std::vector<int>{2});
    EXPECT_NE(words(0).find("the port is in use"), std::string::npos) << words(0);
}

} // namespace
} // namespace ponderscope
