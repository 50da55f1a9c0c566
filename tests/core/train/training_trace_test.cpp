// SPDX-License-Identifier: GPL-3.0-or-later
// training.ponder: the log of a training as a trace.
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/checkpoint/checkpoint.h"
#include "core/ponder/engine/engine.h"
#include "core/trace/reader.h"
#include "core/trace/tools/check.h"
#include "core/train/corpus.h"
#include "core/train/trainer.h"
#include "core/train/training_trace.h"
#include "tests/core/train/small_recipe.h"

#include <gtest/gtest.h>

#include <map>

namespace ponderscope {
namespace {

using nlohmann::json;
using testing::small_recipe;
using testing::TemporaryFolder;

/// A model of two steps that halts, or not, with held-out text.
json recipe_of(const std::string& method) {
    json recipe = method == "vanilla" ? testing::small_recipe() : testing::recipe_of(method);
    recipe["texts"]["held_out_fraction"] = 0.2;
    recipe["evaluation"] = {{"every", 4}, {"windows", 3}};
    if (method == "adaponderlm") {
        recipe["model"]["pondering"]["threshold"] = 0.88; // fresh gates stand at sigmoid(2) = 0.8808
    }
    return recipe;
}

/// (quantity, place, step) -> value: all that the curves say, without the times.
using Points = std::map<std::tuple<std::string, std::int64_t, std::int64_t>, double>;
Points points_of(const TraceReader& reader) {
    Points points;
    for (const TrainingCurve& curve : reader.training_curves(1)) {
        for (std::size_t i = 0; i < curve.size(); ++i) {
            points[{curve.quantity, curve.place, curve.step[i]}] = curve.value[i];
        }
    }
    return points;
}

class TrainingTraceOf : public ::testing::TestWithParam<const char*> {
protected:
    TemporaryFolder folder;
    Recipe recipe(const json& document) { return testing::written_recipe(folder.path(), document); }
    TrainOptions into(const char* name, ExistingOutput existing = ExistingOutput::refuse) {
        return testing::into(folder / name, existing);
    }
};

TEST_P(TrainingTraceOf, SaysWhatTheLogSays) {
    const Recipe read = recipe(recipe_of(GetParam()));
    std::vector<TrainLogRow> rows;
    TrainOptions options = into("out");
    options.logged = [&](const TrainLogRow& row) { rows.push_back(row); };
    static_cast<void>(train(read, options));
    const TraceReader reader = TraceReader::open(folder / "out" / "training.ponder");
    const auto trainings = reader.trainings();
    ASSERT_EQ(trainings.size(), 1U);
    EXPECT_EQ(trainings[0].name, "small");
    EXPECT_EQ(trainings[0].method, GetParam());
    EXPECT_EQ(trainings[0].step, 12);
    EXPECT_EQ(trainings[0].tokens, 12 * 32);
    EXPECT_EQ(trainings[0].planned_steps, 12);
    EXPECT_TRUE(trainings[0].complete);
    EXPECT_EQ(json::parse(trainings[0].recipe).at("training").at("steps"), 12);
    const json provenance = read_json_file(folder / "out" / "training.json");
    EXPECT_EQ(trainings[0].parameters, provenance.at("parameters"));

    const Points points = points_of(reader);
    ASSERT_EQ(rows.size(), 6U) << "steps 3, 4, 6, 8, 9, 12";
    std::size_t found = 0;
    const bool ponders = std::string(GetParam()) != "vanilla";
    for (const TrainLogRow& row : rows) {
        EXPECT_EQ(row.penalty.has_value(), ponders);
        EXPECT_EQ(row.mean_steps.has_value(), ponders);
        EXPECT_GE(row.penalty.value_or(0), 0);
        EXPECT_LE(row.mean_steps.value_or(0), 2);
        const std::pair<const char*, std::optional<double>> numbers[] = {{"loss", row.loss},
                                                                         {"learning_rate", row.learning_rate},
                                                                         {"gradient_norm", row.gradient_norm},
                                                                         {"held_out_nll", row.held_out_nll},
                                                                         {"penalty", row.penalty},
                                                                         {"mean_steps", row.mean_steps}};
        for (const auto& [name, value] : numbers) {
            const auto point = points.find({name, 0, row.step});
            ASSERT_EQ(value.has_value(), point != points.end()) << name << " at " << row.step;
            if (value) {
                EXPECT_EQ(point->second, *value) << name << " at " << row.step;
                ++found;
            }
        }
    }
    for (const auto& [place, value] : points) {
        found -= std::get<0>(place).starts_with("held_out_") && std::get<0>(place) != "held_out_nll" ? 0 : 1;
    }
    EXPECT_EQ(found, 0U) << "nothing but what the log has, beside what was counted on held-out text";
}

TEST_P(TrainingTraceOf, CountsGatesAndStepsOfTheHeldOutText) {
    const bool halts = std::string(GetParam()) != "vanilla";
    const Recipe read = recipe(recipe_of(GetParam()));
    static_cast<void>(train(read, into("out")));
    const TraceReader reader = TraceReader::open(folder / "out" / "training.ponder");
    const Points points = points_of(reader);
    for (const std::int64_t step : {4, 8, 12}) {
        if (!halts) {
            EXPECT_FALSE(points.contains({"held_out_mean_steps", 0, step}));
            EXPECT_FALSE(points.contains({"held_out_gate", 0, step}));
            continue;
        }
        double shares = 0;
        double mean = 0;
        for (std::int64_t k = 0; k <= 2; ++k) {
            ASSERT_TRUE(points.contains({"held_out_steps_share", k, step})) << step;
            const double share = points.at({"held_out_steps_share", k, step});
            EXPECT_GE(share, 0);
            shares += share;
            mean += static_cast<double>(k) * share;
        }
        EXPECT_NEAR(shares, 1, 1e-12);
        EXPECT_NEAR(points.at({"held_out_mean_steps", 0, step}), mean, 1e-12);
        const double gate = points.at({"held_out_gate", 0, step});
        EXPECT_GT(gate, 0);
        EXPECT_LT(gate, 1);
        EXPECT_FALSE(points.contains({"held_out_gate", 2, step})) << "nobody is asked after the last step";
    }
}

/// At the end the whole held-out text is measured with the weights as they are stored: a recording of it
/// finds the same steps and gates.
TEST_P(TrainingTraceOf, EndsWithWhatTheEngineFinds) {
    if (std::string(GetParam()) == "vanilla") {
        GTEST_SKIP() << "a vanilla model takes no steps";
    }
    json document = recipe_of(GetParam());
    const Recipe read = recipe(document);
    const TrainResult result = train(read, into("out"));
    const TraceReader reader = TraceReader::open(folder / "out" / "training.ponder");
    const Points points = points_of(reader);
    ASSERT_GT(result.held_out_tokens, 0);

    // The same windows, scored by the engine.
    const Engine engine = Engine::load(Checkpoint::open(folder / "out"));
    const Tokenizer tokenizer = Tokenizer::load(folder / "out" / "tokenizer.json");
    const Corpus corpus = load_corpus(read, tokenizer);
    double steps = 0;
    double gate = 0;
    double nll = 0;
    std::int64_t tokens = 0;
    for (std::size_t begin = 0; begin + 17 <= corpus.held_out.size(); begin += 16) {
        Window window{std::span(corpus.held_out).subspan(begin, 16), 0, 16};
        window.next = corpus.held_out[begin + 16];
        const auto scored = engine.score(std::span(&window, 1), RecordLevel::basic);
        for (std::size_t t = 0; t < 16; ++t, ++tokens) {
            steps += scored.front().tokens.steps[t];
            nll += static_cast<double>(scored.front().tokens.nll[t]);
        }
        for (const auto& [name, chunk] : scored.front().signals) {
            if (name == signal::gate) {
                const std::vector<float> values = to_floats(chunk);
                const auto width = static_cast<std::size_t>(chunk.shape[1]);
                for (std::size_t t = 0; t < 16; ++t) {
                    gate += static_cast<double>(values[t * width]);
                }
            }
        }
    }
    ASSERT_EQ(tokens, result.held_out_tokens);
    EXPECT_NEAR(nll / static_cast<double>(tokens), result.held_out_nll, 1e-5);
    EXPECT_EQ(read_json_file(folder / "out" / "training.json").at("held_out_nll"), result.held_out_nll);
    EXPECT_NEAR(points.at({"held_out_mean_steps", 0, 12}), steps / static_cast<double>(tokens), 1e-9);
    EXPECT_NEAR(points.at({"held_out_gate", 0, 12}), gate / static_cast<double>(tokens), 1e-5);
}

TEST_P(TrainingTraceOf, ResumesToTheSameContents) {
    json document = recipe_of(GetParam());
    document["training"]["steps"] = 13;
    document["checkpoint"] = {{"every", 5}};
    document["log"] = {{"every", 2}};
    const Recipe read = recipe(document);
    static_cast<void>(train(read, into("whole")));
    // Killed after steps that no state has: what was logged of them is done again. At last when the last row
    // is written and the folder is not yet said to be complete.
    for (const std::int64_t until : {4, 9, 13}) {
        struct Killed {};
        TrainOptions options = into("pieces", ExistingOutput::resume);
        options.logged = [&](const TrainLogRow& row) {
            if (row.step >= until) {
                throw Killed();
            }
        };
        EXPECT_THROW(train(read, options), Killed);
        EXPECT_FALSE(TraceReader::open(folder / "pieces" / "training.ponder").trainings().at(0).complete);
    }
    static_cast<void>(train(read, into("pieces", ExistingOutput::resume)));
    const TraceReader whole = TraceReader::open(folder / "whole" / "training.ponder");
    const TraceReader pieces = TraceReader::open(folder / "pieces" / "training.ponder");
    EXPECT_TRUE(check_trace(pieces.path()).faults.empty());
    EXPECT_EQ(points_of(pieces), points_of(whole));
    const TrainingInfo a = whole.trainings().at(0);
    const TrainingInfo b = pieces.trainings().at(0);
    EXPECT_EQ(pieces.trainings().size(), 1U);
    EXPECT_EQ(std::tie(a.name, a.recipe, a.config, a.step, a.tokens, a.complete, a.fault),
              std::tie(b.name, b.recipe, b.config, b.step, b.tokens, b.complete, b.fault));
}

INSTANTIATE_TEST_SUITE_P(Train, TrainingTraceOf,
                         ::testing::Values("vanilla", "adaponderlm", "ponderlm3", "adaptive_latent_cot"),
                         [](const auto& method) { return std::string(method.param); });

class TrainingTraceFile : public TrainingTraceOf {};

TEST_F(TrainingTraceFile, HasNoHeldOutCurvesWithoutHeldOutText) {
    json document = recipe_of("adaponderlm");
    document["texts"].erase("held_out_fraction");
    static_cast<void>(train(recipe(document), into("nothing")));
    const TraceReader reader = TraceReader::open(folder / "nothing" / "training.ponder");
    for (const TrainingQuantity& quantity : reader.training_quantities(1)) {
        EXPECT_FALSE(quantity.name.starts_with("held_out")) << quantity.name;
    }
}

TEST_F(TrainingTraceFile, AResumedTrainingSaysWhatIsMissingOrRefusesWhatIsBroken) {
    const Recipe read = recipe(recipe_of("adaponderlm"));
    const auto stopped = [&](const char* name) {
        std::stop_source source;
        TrainOptions options = into(name);
        options.stop = source.get_token();
        options.logged = [&](const TrainLogRow& row) {
            if (row.step >= 6) {
                source.request_stop();
            }
        };
        EXPECT_THROW(train(read, options), Cancelled);
        return folder / name / "training.ponder";
    };
    const auto resume = [&](const char* name) -> std::string {
        std::string said;
        TrainOptions options = into(name, ExistingOutput::resume);
        options.notice = [&](const std::string& sentence) { said += sentence; };
        try {
            static_cast<void>(train(read, options));
        } catch (const InputError& error) {
            return error.what();
        }
        return said;
    };
    std::filesystem::remove(stopped("missing"));
    EXPECT_NE(resume("missing").find(" 6"), std::string::npos);
    {
        const auto points = points_of(TraceReader::open(folder / "missing" / "training.ponder"));
        EXPECT_FALSE(points.contains({"loss", 0, 6}));
        EXPECT_TRUE(points.contains({"loss", 0, 12}));
    }
    for (const double part : {0.1, 0.5}) {
        const auto path = stopped(part < 0.3 ? "short" : "shorter");
        const std::string bytes = read_file(path);
        std::ofstream(path, std::ios::binary | std::ios::trunc)
            << bytes.substr(0, static_cast<std::size_t>(part * static_cast<double>(bytes.size())));
        const std::string said = resume(part < 0.3 ? "short" : "shorter");
        EXPECT_NE(said.find("training.ponder: "), std::string::npos) << said;
        std::filesystem::remove(path);
        EXPECT_NE(resume(part < 0.3 ? "short" : "shorter").find(" 6"), std::string::npos);
    }
    const auto other = stopped("other");
    std::ofstream(other, std::ios::binary | std::ios::trunc) << "loss,step\n";
    EXPECT_NE(resume("other").find("training.ponder: "), std::string::npos);
}

} // namespace
} // namespace ponderscope
