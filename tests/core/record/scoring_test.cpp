// SPDX-License-Identifier: GPL-3.0-or-later
// Requests: what they are answered, how texts are cut, and what a trace keeps of them.
#include "core/record/scoring.h"

#include "core/trace/reader.h"
#include "core/trace/tools/check.h"
#include "core/trace/writer.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <numeric>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

using nlohmann::json;

constexpr std::int64_t request_window = 64;

/// One byte is one token; the end token 0 stands for a context that is empty.
class Scoring : public ::testing::Test {
protected:
    Scoring()
        : checkpoint_([&] {
              testing::TinyCheckpoint{.max_positions = request_window, .pondering_steps = 2}.write(folder_ /
                                                                                                   "model");
              Checkpoint opened = Checkpoint::open(folder_ / "model");
              opened.config.eos_token_ids = {0};
              return opened;
          }()),
          engine_(Engine::load(checkpoint_)),
          tokenizer_(Tokenizer::load_folder(checkpoint_.folder)) {}

    std::vector<json> answers(const std::vector<json>& requests, bool record = false) {
        std::vector<std::string> lines;
        for (const json& request : requests) {
            lines.push_back(request.is_string() ? request.get<std::string>() : request.dump());
        }
        std::optional<TraceWriter> writer;
        if (record) {
            writer.emplace(folder_ / "out.ponder");
        }
        RequestScorer scorer(engine_, checkpoint_, &tokenizer_, {}, writer ? &*writer : nullptr);
        std::vector<json> all;
        scorer.answer(lines, 1, [&](const json& answer) { all.push_back(answer); });
        scorer.finish(true);
        return all;
    }
    /// NLL of each token of \p ids but the first, the request_window holding all of them but the last.
    std::vector<double> nll(const std::vector<std::int32_t>& ids) const {
        const Window one{std::span(ids).first(ids.size() - 1),
                         0,
                         static_cast<std::int64_t>(ids.size()) - 1,
                         0,
                         0,
                         0,
                         ids.back()};
        const auto result = engine_.score({&one, 1}, RecordLevel::nll);
        return {result.front().tokens.nll.begin(), result.front().tokens.nll.end()};
    }
    std::vector<std::int32_t> ids(const std::string& text) const { return tokenizer_.encode(text).ids; }
    static json pair(const std::string& context, const std::string& continuation) {
        return {{"type", "loglikelihood"}, {"context", context}, {"continuation", continuation}};
    }

    testing::TemporaryFolder folder_;
    Checkpoint checkpoint_;
    Engine engine_;
    Tokenizer tokenizer_;
};

void expect_sum(const json& answer, const std::vector<double>& nll, std::size_t last) {
    ASSERT_TRUE(answer.contains("loglikelihood")) << answer;
    ASSERT_EQ(answer["nll"].size(), last) << answer;
    EXPECT_NEAR(answer["loglikelihood"],
                -std::accumulate(nll.end() - static_cast<std::ptrdiff_t>(last), nll.end(), 0.0), 1e-4);
}

TEST_F(Scoring, PairsAreCutAsTheHarnessCutsThem) {
    const std::string long_context(100, 'x');
    for (const bool record : {false, true}) {
        std::filesystem::remove(folder_ / "out.ponder");
        const std::vector<json> found =
            answers({pair("The ferry was", " late"), pair("The ferry was ", "late"), pair("", "late"),
                     pair(long_context, "yz"), pair("水很", "冷🙂"), pair("The ferry was", " early")},
                    record);
        ASSERT_EQ(found.size(), 6U);
        const std::vector<double> whole = nll(ids("The ferry was late"));
        expect_sum(found[0], whole, 5);
        expect_sum(found[1], whole, 5); // the space belongs to the continuation
        std::vector<std::int32_t> alone = ids("late");
        alone.insert(alone.begin(), 0);
        expect_sum(found[2], nll(alone), 4);
        expect_sum(found[3], nll(ids(long_context.substr(0, request_window - 1) + "yz")),
                   2); // cut on the left
        expect_sum(found[4], nll(ids("水很冷🙂")), 7);
        expect_sum(found[5], nll(ids("The ferry was early")), 6);
        EXPECT_EQ(found[0]["steps"], json({2, 2, 2, 2, 2}));
        EXPECT_GT(found[0]["flops"], 0);
        EXPECT_EQ(found[3]["id"], 4);
    }
}

TEST_F(Scoring, IdsAreTakenAsTheyAre) {
    const std::vector<json> found =
        answers({{{"id", "a"}, {"type", "loglikelihood"}, {"context", {84, 104}}, {"continuation", {101}}}});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0]["id"], "a");
    expect_sum(found[0], nll({84, 104, 101}), 1);
}

TEST_F(Scoring, RollingWindowsPredictEveryTokenOnce) {
    const std::string text =
        "One gull, two gulls, three gulls: the keeper counted them until the lamp was lit and the "
        "gulls were gone, all but the one that could not count.";
    std::vector<std::int32_t> all = ids(text);
    all.insert(all.begin(), 0);
    double expected = 0;
    // Windows as the harness makes them: disjoint, the last one with as much context as fits.
    for (std::size_t done = 0; done + 1 < all.size();) {
        const std::size_t end = std::min(done + request_window, all.size() - 1);
        const auto begin =
            all.begin() + static_cast<std::ptrdiff_t>(end - std::min<std::size_t>(end, request_window));
        const std::vector<double> part = nll({begin, all.begin() + static_cast<std::ptrdiff_t>(end) + 1});
        expected += std::accumulate(part.end() - static_cast<std::ptrdiff_t>(end - done), part.end(), 0.0);
        done = end;
    }
    for (const bool record : {false, true}) {
        const json answer = answers({{{"type", "loglikelihood_rolling"}, {"text", text}}}, record).at(0);
        EXPECT_EQ(answer["nll"].size(), text.size());
        EXPECT_NEAR(answer["loglikelihood"], -expected, 1e-3);
    }
}

TEST_F(Scoring, GenerationStopsAtATextAndIsTheEnginesOwn) {
    const json request{{"type", "generate_until"}, {"context", "The ferry"}, {"max_tokens", 12}};
    GenerateOptions how{.max_new_tokens = 12};
    const std::vector<std::int32_t> fresh = engine_.generate({ids("The ferry")}, how).front();
    const json whole = answers({request}).at(0);
    ASSERT_EQ(whole["tokens"].get<std::vector<std::int32_t>>(), fresh);
    const std::string text = tokenizer_.decode(fresh, true);
    EXPECT_EQ(whole["steps"].size(), fresh.size());
    json stopping = request;
    stopping["until"] = {text.substr(4, 2)};
    const json stopped = answers({stopping, request}).at(0);
    EXPECT_EQ(stopped["text"], text.substr(0, text.find(text.substr(4, 2))));
    EXPECT_LT(stopped["tokens"].size(), fresh.size());
    // A draw belongs to the seed and the number of the request.
    json drawn = request;
    drawn.update({{"temperature", 1.5}, {"seed", 3}});
    const std::vector<json> two = answers({drawn, drawn});
    EXPECT_EQ(two.at(0)["text"], answers({drawn}).at(0)["text"]);
    EXPECT_NE(two.at(0)["text"], two.at(1)["text"]);
}

TEST_F(Scoring, WrongLinesAreAnsweredAndTheOthersGoOn) {
    const json right = pair("The ferry was", " late");
    const std::vector<json> wrong{
        "{\"type\": ",
        "[1]",
        "{\"type\": \"loglikelihood\", \"context\": \"\xff\", \"continuation\": \"a\"}",
        pair("The ferry", ""),
        pair("a", std::string(request_window + 1, 'b')),
        {{"type", "perplexity"}, {"text", "a"}},
        {{"type", "loglikelihood"}, {"context", "a"}},
        {{"type", "loglikelihood"}, {"context", {1}}, {"continuation", {256}}},
        {{"type", "loglikelihood_rolling"}, {"text", ""}},
        {{"type", "generate_until"}, {"context", "a"}, {"max_tokens", request_window}},
        {{"type", "generate_until"}, {"context", "a"}, {"temperature", -1}},
        {{"type", "generate_until"}, {"context", "a"}, {"unti", {"b"}}}};
    std::vector<json> requests{right};
    for (const json& one : wrong) {
        requests.push_back(one);
        requests.push_back(right);
    }
    requests.insert(requests.begin(), "   "); // a blank line is no request
    const std::vector<json> found = answers(requests, true);
    ASSERT_EQ(found.size(), 2 * wrong.size() + 1);
    for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].contains("error"), i % 2 == 1) << found[i];
        EXPECT_EQ(found[i]["id"], i + 2) << found[i];
        if (i % 2 == 1) {
            EXPECT_EQ(found[i]["line"], i + 2);
            EXPECT_EQ(found[i]["error"].get<std::string>().find("the file"), std::string::npos)
                << "a request is not in a file: " << found[i]["error"];
        }
    }
    EXPECT_EQ(TraceReader::open(folder_ / "out.ponder").runs().at(0).sequences,
              static_cast<std::int64_t>(wrong.size()) + 1);
}

TEST_F(Scoring, ATraceKeepsGroupsLabelsAndEveryToken) {
    std::vector<json> requests;
    for (const char* option : {" late", " a gull"}) {
        json request = pair("The ferry was", option);
        request.update({{"group", "boats/0"}, {"label", option[1] == 'l' ? "right 0" : "wrong 1"}});
        requests.push_back(request);
    }
    requests.push_back(pair(std::string(100, 'x'), "yz"));
    requests.push_back({{"type", "loglikelihood_rolling"}, {"text", std::string(150, 'q')}});
    requests.push_back({{"type", "generate_until"}, {"context", "The"}, {"max_tokens", 5}});
    (void)answers(requests, true);
    const TraceReader reader = TraceReader::open(folder_ / "out.ponder");
    const RunInfo run = reader.runs().at(0);
    EXPECT_TRUE(run.complete);
    const std::vector<SequenceInfo> sequences = reader.sequences(run.id);
    ASSERT_EQ(sequences.size(), 5U);
    EXPECT_EQ(sequences[0].group, "boats/0");
    EXPECT_EQ(sequences[1].title, "boats/0: wrong 1");
    EXPECT_EQ(sequences[2].tokens, request_window + 1);
    EXPECT_EQ(sequences[3].tokens, 151);
    EXPECT_EQ(sequences[3].scored_tokens, 150);
    EXPECT_EQ(sequences[4].tokens, 8);
    EXPECT_EQ(reader.text(run.id, 0), "The ferry was late");
    std::vector<std::string> labels;
    for (const auto& [sequence, label] : reader.labels(run.id)) {
        if (sequence < 2) {
            labels.push_back(std::to_string(label.begin) + "-" + std::to_string(label.end) + " " +
                             label.name);
        }
    }
    EXPECT_EQ(labels,
              (std::vector<std::string>{"0-13 context", "13-18 right 0", "0-13 context", "13-20 wrong 1"}));
    for (const TraceFault& fault : check_trace(folder_ / "out.ponder").faults) {
        ADD_FAILURE() << fault.place << ": " << fault.message;
    }
}

} // namespace
} // namespace ponderscope
