// SPDX-License-Identifier: GPL-3.0-or-later
// A device whose memory is full: at loading, in a batch, in a text, in training; by what runs on it, or by
// what somebody else put there meanwhile.
#include "core/base/error.h"
#include "core/model/device.h"
#include "core/record/session.h"
#include "core/trace/reader.h"
#include "core/train/trainer.h"
#include "tests/core/train/small_recipe.h"
#include "tests/support/errors.h"
#include "tests/support/host_device/host_device.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

using namespace testing;

constexpr std::int64_t plenty = std::int64_t{1} << 40;
const at::Device device(at::kPrivateUse1, 0);

/// Bytes that live tensors hold.
c10::CachingAllocator::Stat held() {
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return at::getDeviceAllocator(device.type())->getDeviceStats(device.index()).allocated_bytes[all];
}

class FullMemory : public ::testing::Test {
protected:
    void SetUp() override {
        TinyCheckpoint model{.max_positions = 512, .pondering_steps = 2};
        model.write(folder_ / "model");
    }
    void TearDown() override { set_host_memory(plenty); }

    [[nodiscard]] Engine load() const {
        return Engine::load(Checkpoint::open(folder_ / "model"), {.device = "hostgpu:0"});
    }

    /// The scored tokens' NLL of eight windows of 64 bytes, recorded at once.
    std::vector<float> recorded(const Engine& engine, const std::string& trace,
                                std::int64_t context = 64) const {
        const Checkpoint checkpoint = Checkpoint::open(folder_ / "model");
        const Tokenizer tokenizer = Tokenizer::load_folder(checkpoint.folder);
        RecordOptions options;
        options.context = options.stride = context;
        TraceWriter writer(folder_ / trace);
        const RecordReport report =
            record(engine, checkpoint, {sequence_from_prompt(text_, tokenizer)}, &tokenizer, writer, options);
        return TraceReader::open(folder_ / trace).tokens(report.run, 0).nll;
    }

    /// What \p action takes of the memory at most, beside what lies there.
    static std::int64_t taken_by(const std::function<void()>& action) {
        at::getDeviceAllocator(device.type())->resetPeakStats(device.index());
        const std::int64_t before = held().current;
        action();
        return held().peak - before;
    }
    static void leave_free(std::int64_t bytes) { set_host_memory(held().current + bytes); }

    static void expect_words(const std::string& sentence, const std::vector<std::string>& words) {
        for (const std::string& word : words) {
            EXPECT_NE(sentence.find(word), std::string::npos) << word << " is not in: " << sentence;
        }
    }

    TemporaryFolder folder_;
    std::string text_ = repeated("One gull, two gulls, three gulls were counted by the keeper. ", 8) +
                        "And then the lamp was lit.";
};

TEST_F(FullMemory, AtLoadingTheFolderAndTheDeviceAreNamed) {
    const std::int64_t weights = taken_by([&] { (void)load(); });
    ASSERT_GT(weights, 0);
    for (const std::int64_t room : {std::int64_t{0}, weights / 2, weights - 1}) {
        leave_free(room);
        expect_words(error_of<EnvironmentError>([&] { (void)load(); }),
                     {(folder_ / "model").string(), "hostgpu:0", "[environment.memory]"});
        EXPECT_EQ(held().current, 0) << "nothing stays of what did not fit";
    }
    leave_free(weights);
    (void)load();
}

/// But for what products of fewer rows round otherwise.
void expect_same(const std::vector<float>& got, const std::vector<float>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t t = 0; t < got.size(); ++t) {
        ASSERT_EQ(std::isnan(got[t]), std::isnan(expected[t])) << t;
        ASSERT_TRUE(std::isnan(got[t]) || std::abs(got[t] - expected[t]) <= 1e-5F * expected[t]) << t;
    }
}

TEST_F(FullMemory, ABatchThatDoesNotFitRunsInPieces) {
    const Engine engine = load();
    std::vector<float> expected;
    const std::int64_t all = taken_by([&] { expected = recorded(engine, "all.ponder"); });
    for (const std::int64_t part : {2, 4, 6}) {
        SCOPED_TRACE(part);
        leave_free(all / part);
        const std::vector<float> got = recorded(engine, std::to_string(part) + ".ponder");
        expect_same(got, expected);
    }
}

TEST_F(FullMemory, AWindowThatDoesNotFitNamesASmallerOne) {
    const Engine engine = load();
    const std::int64_t all = taken_by([&] { (void)recorded(engine, "all.ponder", 512); });
    leave_free(all * 3 / 4);
    expect_words(error_of<EnvironmentError>([&] { (void)recorded(engine, "one.ponder", 512); }),
                 {"hostgpu:0", "--context 256", "[environment.memory]"});
    EXPECT_FALSE(recorded(engine, "shorter.ponder", 256).empty());
}

TEST_F(FullMemory, SomebodyElseFillsItMeanwhile) {
    const Engine engine = load();
    const std::vector<float> expected = recorded(engine, "all.ponder");
    const std::int64_t one = taken_by([&] { (void)recorded(engine, "one.ponder", 64); }) / 5;
    const std::int64_t used = held().current;
    // At one moment after the other: the batch at hand is lost and computed again, a window at a time.
    for (const std::int64_t moment : {1, 10, 40, 200}) {
        SCOPED_TRACE(moment);
        set_host_memory(plenty);
        fill_host_memory_after(moment, used + one);
        const std::vector<float> got = recorded(engine, "moment" + std::to_string(moment) + ".ponder");
        expect_same(got, expected);
    }
    // For good: the trace keeps what was recorded before, and says that it is partial.
    set_host_memory(plenty);
    fill_host_memory_after(10, 0);
    expect_words(error_of<EnvironmentError>([&] { (void)recorded(engine, "partial.ponder"); }),
                 {"hostgpu:0", "[environment.memory]"});
    const RunInfo run = find_run(TraceReader::open(folder_ / "partial.ponder"), "1");
    EXPECT_FALSE(run.complete);
}

TEST_F(FullMemory, GenerationAndInspectionSayIt) {
    const Engine engine = load();
    const std::vector<std::vector<std::int32_t>> prompts{{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11}};
    GenerateOptions options{.max_new_tokens = 12};
    const auto expected = engine.generate(prompts, options);
    const std::int64_t used = held().current;
    for (const std::int64_t moment : {0, 3, 100, 1000}) {
        SCOPED_TRACE(moment);
        set_host_memory(plenty);
        fill_host_memory_after(moment, used);
        expect_words(error_of<MemoryExhausted>([&] { (void)engine.generate(prompts, options); }),
                     {"hostgpu:0", "[environment.memory]"});
        EXPECT_EQ(held().current, used) << "what was computed is let go";
    }
    leave_free(0);
    EXPECT_THROW((void)engine.inspect_batch({{1, 2, 3}}), MemoryExhausted);
    set_host_memory(plenty);
    EXPECT_EQ(engine.generate(prompts, options), expected) << "as if nothing had been";
}

TEST_F(FullMemory, TrainingKeepsWhatItSaved) {
    const Recipe recipe = written_recipe(folder_.path(), small_recipe());
    TrainOptions options;
    options.output = folder_ / "out";
    options.device = "hostgpu:0";
    double loss = 0;
    const std::int64_t all = taken_by([&] { loss = train(recipe, options).loss; });
    std::filesystem::remove_all(options.output);

    leave_free(all / 16);
    expect_words(error_of<EnvironmentError>([&] { (void)train(recipe, options); }),
                 {options.output.string(), "hostgpu:0", "[environment.memory]"});

    set_host_memory(plenty);
    options.logged = [&](const TrainLogRow& row) {
        if (row.step == 6) {
            leave_free(1000);
        }
    };
    expect_words(error_of<EnvironmentError>([&] { (void)train(recipe, options); }),
                 {options.output.string(), " 2 ", " 16 ", "training.batch", "[environment.memory]"});
    set_host_memory(plenty);
    options.logged = {};
    options.existing = ExistingOutput::resume;
    EXPECT_NEAR(train(recipe, options).loss, loss, 1e-5) << "it goes on where it was";
    EXPECT_EQ(held().current, 0);
}

} // namespace
} // namespace ponderscope
