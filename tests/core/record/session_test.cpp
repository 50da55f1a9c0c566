// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/session.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/scoped_stop.h"
#include "core/policy/rerun_difference.h"
#include "core/ponder/halting/halting_rules.h"
#include "core/record/kept_signals.h"
#include "core/record/rerun.h"
#include "core/record/sequence_source.h"
#include "core/trace/reader.h"
#include "tests/support/errors.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {
namespace {

using testing::TemporaryFolder;
using testing::TinyCheckpoint;

constexpr const char* story = "One gull, two gulls, three gulls: the keeper counted them until the lamp was "
                              "lit and the gulls were gone.";

struct Recorded {
    RecordReport report;
    RunInfo run;
    TokenColumns tokens;
};

class Session : public ::testing::Test {
protected:
    void SetUp() override {
        TinyCheckpoint vanilla;
        vanilla.write(folder_ / "vanilla");
        TinyCheckpoint pondering{.pondering_steps = 2};
        pondering.write(folder_ / "ponderlm");
    }

    Recorded record_story(const std::string& model, const std::string& trace, RecordOptions options,
                          const std::function<void(Engine&)>& prepare = {}) const {
        const Checkpoint checkpoint = Checkpoint::open(folder_ / model);
        Engine engine = Engine::load(checkpoint);
        if (prepare) {
            prepare(engine);
        }
        const Tokenizer tokenizer = Tokenizer::load_folder(checkpoint.folder);
        Recorded result;
        {
            TraceWriter writer(folder_ / trace);
            result.report = record(engine, checkpoint, {sequence_from_prompt(story, tokenizer)}, &tokenizer,
                                   writer, options);
        }
        const TraceReader reader = TraceReader::open(folder_ / trace);
        result.run = find_run(reader, std::to_string(result.report.run));
        result.tokens = reader.tokens(result.run.id, 0);
        return result;
    }

    TemporaryFolder folder_;
};

TEST_F(Session, ForcedTokensAreThoseOfTheTextWhateverTheWindow) {
    RecordOptions options{.context = 24, .stride = 10, .batch = 3};
    const Recorded forced = record_story("ponderlm", "forced.ponder", options, [](Engine& engine) {
        engine.choose(&RunPlan::rule, forced_halting({{0, 30, 0}, {0, 31, 1}}, nullptr));
    });
    EXPECT_EQ(forced.run.policy, "learned; forced 30:0,31:1");
    for (std::size_t t = 0; t < forced.tokens.size(); ++t) {
        EXPECT_EQ(forced.tokens.steps[t], t == 30 ? 0 : t == 31 ? 1 : 2) << t;
    }
    const Recorded usual = record_story("ponderlm", "forced.ponder", options);
    EXPECT_EQ(usual.run.policy, "learned");
    for (std::size_t t = 0; t < 30; ++t) {
        EXPECT_NEAR(usual.tokens.nll[t], forced.tokens.nll[t], 1e-5) << "nothing before knows of it";
    }
    EXPECT_NE(usual.tokens.nll[30], forced.tokens.nll[30]);
}

TEST_F(Session, TheRunSaysHowItWasScored) {
    TinyCheckpoint{}.write(folder_ / "latent");
    nlohmann::json config = read_json_file(folder_ / "latent" / "config.json");
    config["pondering"] = {{"method", "ponderlm2"}, {"max_steps", 2}};
    write_file_atomically(folder_ / "latent" / "config.json", config.dump());
    const Recorded exact = record_story("latent", "latent.ponder", {});
    EXPECT_EQ(exact.run.scoring, "exact") << "our own section's default";
    const Recorded quick = record_story("latent", "latent.ponder", {},
                                        [](Engine& engine) { engine.choose(&RunPlan::refreshes, 2); });
    EXPECT_EQ(quick.run.scoring, "jacobi:2");
    const TraceReader reader = TraceReader::open(folder_ / "latent.ponder");
    for (const std::int64_t run : {exact.run.id, quick.run.id}) {
        bool found = false;
        for (const SignalInfo& info : reader.signal_infos(run)) {
            if (info.name == signal::jacobi_difference) {
                found = true;
                EXPECT_EQ(info.axes, (std::vector<std::string>{"token", "iteration"}));
            }
        }
        EXPECT_EQ(found, run == quick.run.id) << "an exact run has no refreshes of all slots";
    }
    const SignalChunk moved = reader.signal(quick.run.id, 0, signal::jacobi_difference).value();
    ASSERT_EQ(moved.shape.size(), 2U);
    EXPECT_EQ(moved.shape[1], 2);
    EXPECT_EQ(exact.tokens.flops, quick.tokens.flops);
}

TEST_F(Session, TheTraceHoldsWhatTheEngineComputed) {
    for (const std::string model : {"vanilla", "ponderlm"}) {
        const Recorded recorded =
            record_story(model, model + ".ponder", {.context = 24, .stride = 10, .batch = 3});
        const std::string text = story;
        ASSERT_EQ(recorded.tokens.size(), text.size()) << "every byte is a token";
        EXPECT_TRUE(recorded.run.complete);
        EXPECT_EQ(recorded.run.tokens, static_cast<std::int64_t>(text.size()));
        EXPECT_EQ(recorded.run.scored_tokens, static_cast<std::int64_t>(text.size()) - 1);

        // Each token again, alone in the window that the strided rule names.
        const Checkpoint checkpoint = Checkpoint::open(folder_ / model);
        const Engine engine = Engine::load(checkpoint);
        const auto tokens = static_cast<std::int64_t>(text.size());
        for (std::int64_t t = 0; t < tokens; ++t) {
            EXPECT_EQ(recorded.tokens.begin[static_cast<std::size_t>(t)], static_cast<std::uint64_t>(t));
            EXPECT_EQ(recorded.tokens.end[static_cast<std::size_t>(t)], static_cast<std::uint64_t>(t + 1));
            std::int64_t begin = 0;
            while (begin + 24 < tokens && t + 1 >= begin + 24) {
                begin += 10;
            }
            const std::int64_t end = std::min(begin + 24, tokens);
            const std::span<const std::int32_t> ids(recorded.tokens.id);
            const Window window{
                ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
                t - begin, t - begin + 1};
            const WindowResult alone = engine.score(std::span(&window, 1), RecordLevel::steps).front();
            const float ours = recorded.tokens.nll[static_cast<std::size_t>(t)];
            if (t + 1 == tokens) {
                EXPECT_TRUE(std::isnan(ours));
                EXPECT_TRUE(std::isnan(alone.tokens.nll.front()));
            } else {
                EXPECT_NEAR(ours, alone.tokens.nll.front(), 1e-5F) << model << ", token " << t;
            }
            EXPECT_NEAR(recorded.tokens.entropy[static_cast<std::size_t>(t)], alone.tokens.entropy.front(),
                        1e-5F);
            EXPECT_EQ(recorded.tokens.steps[static_cast<std::size_t>(t)], model == "ponderlm" ? 2 : 0);
        }
    }
}

TEST_F(Session, PerStepReadOutsEndInTheTokensOwnNumbers) {
    const Recorded recorded = record_story("ponderlm", "steps.ponder", {.context = 32});
    const TraceReader reader = TraceReader::open(folder_ / "steps.ponder");
    const auto nll = reader.signal(recorded.run.id, 0, signal::nll);
    ASSERT_TRUE(nll.has_value());
    ASSERT_EQ(nll->shape, (std::vector<std::int64_t>{static_cast<std::int64_t>(recorded.tokens.size()), 3}));
    const std::vector<float> values = to_floats(*nll);
    for (std::size_t t = 0; t + 1 < recorded.tokens.size(); ++t) {
        EXPECT_NEAR(values[3 * t + 2], recorded.tokens.nll[t], 2e-3F)
            << "the last step's read-out is the token's (float16 in the store)";
    }
    EXPECT_EQ(reader.token_bytes(recorded.run.id, 'g'), "g") << "the trace knows its words";
}

TEST_F(Session, RunsOfOneTraceGetDifferentNames) {
    RecordOptions options{.run_name = "same"};
    EXPECT_EQ(record_story("vanilla", "two.ponder", options).run.name, "same");
    const std::string second = record_story("ponderlm", "two.ponder", options).run.name;
    EXPECT_NE(second, "same");
    EXPECT_EQ(TraceReader::open(folder_ / "two.ponder").runs().size(), 2U);
}

TEST_F(Session, ACancelledRunIsPartialAndReadable) {
    const Checkpoint checkpoint = Checkpoint::open(folder_ / "vanilla");
    const Engine engine = Engine::load(checkpoint);
    const Tokenizer tokenizer = Tokenizer::load_folder(checkpoint.folder);
    std::string text;
    for (int i = 0; i < 20; ++i) {
        text += story;
    }
    std::stop_source stop;
    TraceWriter writer(folder_ / "cut.ponder");
    const RecordReport report = record(
        engine, checkpoint, {sequence_from_prompt(text, tokenizer)}, &tokenizer, writer,
        {.context = 32, .batch = 1},
        [&stop](const Progress& progress) {
            if (progress.activity == "recording" && progress.done > 100) {
                stop.request_stop();
            }
        },
        stop.get_token());
    EXPECT_TRUE(report.cancelled);
    EXPECT_GT(report.tokens, 100);
    const TraceReader reader = TraceReader::open(folder_ / "cut.ponder");
    const std::vector<RunInfo> runs = reader.runs();
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_FALSE(runs[0].complete);
    EXPECT_EQ(reader.tokens(runs[0].id, 0).size(), static_cast<std::size_t>(report.tokens));
    const std::vector<FaultInfo> faults = reader.faults(runs[0].id);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_NE(faults[0].message.find(" " + std::to_string(report.tokens) + " "), std::string::npos)
        << faults[0].message;
}

TEST_F(Session, APartialRunIsRerunAsFarAsItGot) {
    const Checkpoint checkpoint = Checkpoint::open(folder_ / "ponderlm");
    Engine engine = Engine::load(checkpoint);
    engine.choose(&RunPlan::rule, full_halting());
    const Tokenizer tokenizer = Tokenizer::load_folder(checkpoint.folder);
    std::vector<SequenceInput> texts(4, sequence_from_prompt(story, tokenizer));
    for (SequenceInput& text : texts) {
        text.group = "keeper";
        text.labels = {{4, 8, "gull"}};
    }
    const std::int64_t length = texts[0].length();
    std::stop_source stop;
    TraceWriter writer(folder_ / "cut.ponder");
    (void)record(
        engine, checkpoint, texts, &tokenizer, writer, {.context = 32, .batch = 1, .finish = false},
        [&](const Progress& progress) {
            if (progress.activity == "recording" && progress.done > 2 * length) {
                stop.request_stop();
            }
        },
        stop.get_token());
    const TraceReader reader = TraceReader::open(folder_ / "cut.ponder");
    writer.finish();
    const RunInfo cut = reader.runs().at(0);
    ASSERT_FALSE(cut.complete);
    const std::vector<SequenceInput> held = recorded_sequences(reader, cut);
    ASSERT_EQ(held.size(), 3U);
    EXPECT_LT(held[2].length(), length);
    const PolicySpec spec = PolicySpec::parse("fixed:n=1");
    {
        TraceWriter more(folder_ / "cut.ponder");
        (void)rerun(engine, checkpoint, cut, ReplayTable::load(reader, cut), held, &tokenizer, spec, more,
                    {});
    }
    const RunInfo again = reader.runs().at(1);
    EXPECT_TRUE(is_rerun_of(again, cut, spec.text()));
    EXPECT_EQ(again.text_digest, cut.text_digest) << "what a rerun is found by";
    for (const SequenceInfo& sequence : reader.sequences(again.id)) {
        EXPECT_EQ(sequence.group, "keeper");
    }
    const auto labels = reader.labels(again.id);
    ASSERT_EQ(labels.size(), 3U);
    EXPECT_EQ(labels[2].first, 2);
    EXPECT_EQ(labels[2].second.name, "gull");
}

TEST_F(Session, WhateverEndsARunIsSaidInTheTrace) {
    const Checkpoint checkpoint = Checkpoint::open(folder_ / "ponderlm");
    const Engine engine = Engine::load(checkpoint);
    const Tokenizer tokenizer = Tokenizer::load_folder(checkpoint.folder);
    RecordOptions options{.context = 32, .batch = 1};
    TraceWriter writer(folder_ / "failed.ponder");
    // As a GPU does: in the middle, with a page of where.
    const auto fail = [](const Progress& progress) {
        if (progress.activity == "recording" && progress.done > 40) {
            throw std::runtime_error("CUDA error: device-side assert triggered\nSearch for it in the manual");
        }
    };
    EXPECT_THROW(record(engine, checkpoint, {sequence_from_prompt(story, tokenizer)}, &tokenizer, writer,
                        options, fail),
                 std::runtime_error);
    const TraceReader reader = TraceReader::open(folder_ / "failed.ponder");
    const std::vector<RunInfo> runs = reader.runs();
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_FALSE(runs[0].complete);
    EXPECT_GT(runs[0].tokens, 40);
    const std::vector<FaultInfo> faults = reader.faults(runs[0].id);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].message,
              "The recording ended before its time: CUDA error: device-side assert triggered");
}

/// Two sequences; with the second one something happens.
class Eventful final : public SequenceSource {
public:
    Eventful(SequenceInput sequence, std::function<void()> event)
        : sequence_(std::make_shared<const SequenceInput>(std::move(sequence))), event_(std::move(event)) {}
    std::shared_ptr<const SequenceInput> next() override {
        if (++given_ == 2) {
            event_();
        }
        return given_ <= 2 ? sequence_ : nullptr;
    }
    [[nodiscard]] Amount amount() const override { return {}; }
    [[nodiscard]] std::string text_digest() const override { return "digest"; }

private:
    std::shared_ptr<const SequenceInput> sequence_;
    std::function<void()> event_;
    int given_ = 0;
};

TEST_F(Session, ASingleBatchIsInterruptedWithin) {
    const Checkpoint checkpoint = Checkpoint::open(folder_ / "ponderlm");
    const Engine engine = Engine::load(checkpoint);
    const Tokenizer tokenizer = Tokenizer::load_folder(checkpoint.folder);
    std::stop_source stop;
    // Behind the last look at the stop token before the batch of both is computed.
    Eventful source(sequence_from_prompt(story, tokenizer), [&] { stop.request_stop(); });
    const ScopedStop scope(stop.get_token());
    TraceWriter writer(folder_ / "stopped.ponder");
    const RecordReport report =
        record(engine, checkpoint, source, &tokenizer, writer, {}, {}, stop.get_token());
    EXPECT_TRUE(report.cancelled);
    EXPECT_EQ(report.tokens, 0);
    const TraceReader reader = TraceReader::open(folder_ / "stopped.ponder");
    EXPECT_FALSE(reader.runs().at(0).complete);
    EXPECT_EQ(reader.faults(1).size(), 1U);
}

TEST_F(Session, AFailureLeavesAWriterThatIsNotItsOwnOpen) {
    const Checkpoint checkpoint = Checkpoint::open(folder_ / "ponderlm");
    const Engine engine = Engine::load(checkpoint);
    const Tokenizer tokenizer = Tokenizer::load_folder(checkpoint.folder);
    Eventful source(sequence_from_prompt(story, tokenizer),
                    [] { throw InputError(ErrorId::input_invalid, "It ends here."); });
    RecordOptions options{.batch = 1, .finish = false};
    TraceWriter writer(folder_ / "open.ponder");
    const std::int64_t training = writer.begin_training({}, {});
    EXPECT_THROW((void)record(engine, checkpoint, source, &tokenizer, writer, options), InputError);
    writer.end_training(training, false, "The memory is full."); // the caller goes on writing
    writer.finish();
    const TraceReader reader = TraceReader::open(folder_ / "open.ponder");
    EXPECT_EQ(reader.faults(1).size(), 1U);
    EXPECT_EQ(reader.trainings().at(0).fault, "The memory is full.");
}

TEST_F(Session, IdsBeyondTheVocabularyAreRefusedBeforeAnythingIsWritten) {
    TinyCheckpoint small{.vocab_size = 64};
    small.write(folder_ / "small", false);
    const Checkpoint checkpoint = Checkpoint::open(folder_ / "small");
    const Engine engine = Engine::load(checkpoint);
    SequenceInput input;
    input.title = "ids.json";
    input.ids = {1, 2, 64};
    TraceWriter writer(folder_ / "ids.ponder");
    EXPECT_THROW(record(engine, checkpoint, {input}, nullptr, writer, {}), InputError);
    writer.finish();
    EXPECT_TRUE(TraceReader::open(folder_ / "ids.ponder").runs().empty());
}

TEST(Ids, JsonRowsFlatRowAndWhatIsWrong) {
    TemporaryFolder folder;
    const auto read = [&folder](const std::string& text) {
        write_file_atomically(folder / "ids.json", text);
        return read_ids(folder / "ids.json");
    };
    EXPECT_EQ(read("[[1, 2], [3]]"), (std::vector<std::vector<std::int32_t>>{{1, 2}, {3}}));
    EXPECT_EQ(read("[4, 5]"), (std::vector<std::vector<std::int32_t>>{{4, 5}}));
    for (const char* wrong : {"[]", "[[]]", "[[1], 2]", "[[1.5]]", "[[-1]]", "[[\"a\"]]", "{\"a\": 1}",
                              "[[99999999999]]", "[[1, 2"}) {
        EXPECT_THROW(read(wrong), InputError) << wrong;
    }
}

TEST_F(Session, AStateIsPutInInEveryWindowThatHoldsItsToken) {
    RecordOptions options{.context = 24, .stride = 12};
    const auto plain = record_story("ponderlm", "plain.ponder", options).tokens.nll;
    const auto patched =
        record_story("ponderlm", "patched.ponder", options, [](Engine& engine) {
            const std::vector<float> zero(static_cast<std::size_t>(engine.config().hidden_size), 0.0F);
            engine.use_patches({{{0, 30, 1, 0}, zero}});
        }).tokens.nll;
    // Windows begin at 0, 12, 24, 36: read out are tokens up to 22, 34, 46, ...
    const auto moved = [&](std::size_t begin, std::size_t end) {
        double most = 0;
        for (std::size_t t = begin; t < end; ++t) {
            most = std::max(most, std::abs(static_cast<double>(patched.at(t)) - plain.at(t)));
        }
        return most;
    };
    EXPECT_LE(moved(0, 30), 1e-6) << "before it";
    EXPECT_GT(moved(30, 35), 1e-4) << "where it is read out";
    EXPECT_GT(moved(35, 47), 1e-5) << "where it is context";
    EXPECT_LE(moved(47, plain.size() - 1), 1e-6) << "windows that do not hold it";
}

TEST_F(Session, StatesThatNoMemoryHoldsAreRefusedWithAContextThatFits) {
    Engine engine = Engine::load(Checkpoint::open(folder_ / "ponderlm"));
    EXPECT_EQ(windows_that_fit(engine, 3'000'000, 8), 8) << "none are recorded";
    const std::int64_t plain = bytes_a_token(engine, {}, 24);
    engine.choose(&RunPlan::states, StateChoice{});
    EXPECT_EQ(engine.token_bytes(), 3 * 16 * 2);
    EXPECT_EQ(bytes_a_token(engine, {}, 24), plain + engine.token_bytes());
    EXPECT_EQ(windows_that_fit(engine, 500, 8), 8);
    EXPECT_EQ(windows_that_fit(engine, 2'000'000, 8), 1);
    const std::string refusal = testing::error_of([&] { (void)windows_that_fit(engine, 3'000'000, 8); });
    EXPECT_NE(refusal.find("--context 2796202"), std::string::npos) << refusal;
}

} // namespace
} // namespace ponderscope
