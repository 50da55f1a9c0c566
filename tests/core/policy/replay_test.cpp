// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/replay.h"

#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/errors.h"
#include "tests/support/packed.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();

/// Two sequences of 4 tokens, K = 3, made-up signals.
ReplayTable small_table() {
    ReplayTable table;
    table.run = "t.ponder#run";
    table.columns = SignalColumns(3, 8);
    table.sequences = {4, 4};
    for (std::uint32_t i = 0; i < 8; ++i) {
        table.places.push_back({i / 4, i % 4, 4});
        table.ran.push_back(3);
    }
    for (const PolicySignal signal : {PolicySignal::nll, PolicySignal::entropy, PolicySignal::argmax}) {
        table.columns.add(signal);
        for (std::int64_t k = 0; k <= 3; ++k) {
            for (std::size_t i = 0; i < 8; ++i) {
                const double u =
                    token_draw(static_cast<std::uint64_t>(signal), static_cast<std::uint64_t>(k), i);
                table.columns.column(signal, k)[i] =
                    static_cast<float>(signal == PolicySignal::argmax ? std::floor(2 * u) : 5 * u);
            }
        }
    }
    for (const std::size_t last : {std::size_t{3}, std::size_t{7}}) {
        for (std::int64_t k = 0; k <= 3; ++k) {
            table.columns.column(PolicySignal::nll, k)[last] = nan_f;
        }
    }
    const std::span<const float> nll = std::as_const(table.columns).column(PolicySignal::nll, 3);
    table.nll.assign(nll.begin(), nll.end());
    table.finish();
    return table;
}

ReplayResult replayed(const ReplayTable& table, const std::string& policy) {
    return replay(table, PolicySpec::parse(policy));
}

TEST(Draws, AreThoseOfTheReference) {
    const auto policy = make_policy(PolicySpec::parse("uniform:rate=0.9,seed=20261122"), {.max_steps = 3});
    const std::vector<TokenPlace> places{{0, 0, 2}, {0, 1, 2}, {1, 0, 1}};
    std::vector<double> numbers(3);
    policy->per_token(places, numbers);
    const std::vector<double> expected{0.9654546488515937, 0.0796241073455638, 0.5038924485513951};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(numbers[i], expected[i], 1e-15);
    }
}

// Rates in between are those of the reference (golden_test.cpp).
TEST(Replay, TheEndsOfARateStopAllTokensOrNone) {
    for (const char* kind : {"uniform", "geometric"}) {
        for (const int rate : {0, 3}) {
            const std::string spec = std::string(kind) + ":rate=" + std::to_string(rate);
            EXPECT_EQ(replayed(small_table(), spec).mean_steps, rate) << spec;
        }
    }
}

TEST(Replay, CountsTokensWithATargetOnly) {
    const ReplayTable table = small_table();
    const ReplayResult result = replayed(table, "fixed:n=1");
    EXPECT_EQ(result.scored, 6);
    EXPECT_EQ(result.steps, std::vector<std::int32_t>(8, 1));
    EXPECT_EQ(result.mean_steps, 1);
    EXPECT_EQ(result.histogram, (std::vector<std::int64_t>{0, 6, 0, 0}));
    double sum = 0;
    for (const std::size_t i : std::initializer_list<std::size_t>{0, 1, 2, 4, 5, 6}) {
        sum += static_cast<double>(table.columns.column(PolicySignal::nll, 1)[i]);
        EXPECT_EQ(result.nll[i], table.columns.column(PolicySignal::nll, 1)[i]);
    }
    EXPECT_NEAR(result.mean_nll, sum / 6, 1e-12);
    EXPECT_TRUE(std::isnan(result.nll[3]));
    EXPECT_TRUE(result.flops.empty());
    EXPECT_TRUE(std::isnan(result.mean_flops));
}

TEST(Replay, LearnedIsTheStepThatTheConfigNames) {
    ReplayTable table = small_table();
    table.columns.add(PolicySignal::continue_value);
    table.context.own_rule = OwnRule::Stops::at_least;
    table.context.exit_step = 1; // the threshold, which it has none of, does not count
    table.finish();
    EXPECT_EQ(table.context.learned_rate, 1);
    EXPECT_EQ(replayed(table, "learned").steps, std::vector<std::int32_t>(8, 1));
    EXPECT_EQ(replayed(table, "learned:theta=0").steps, std::vector<std::int32_t>(8, 0));
}

TEST(Replay, NeverGoesBeyondTheStepsThatWereRecorded) {
    ReplayTable table = small_table();
    table.ran = {0, 1, 2, 3, 0, 1, 2, 3};
    // As the recorder leaves it: steps that did not run are 0, which no rule may mistake for a good NLL.
    for (std::int64_t k = 0; k <= 3; ++k) {
        for (std::size_t i = 0; i < 8; ++i) {
            if (k > table.ran[i]) {
                table.columns.column(PolicySignal::nll, k)[i] = 0;
                table.columns.column(PolicySignal::entropy, k)[i] = 0;
            }
        }
    }
    table.finish();
    EXPECT_TRUE(table.halted);
    EXPECT_EQ(replayed(table, "full").steps, table.ran);
    const ReplayResult fixed = replayed(table, "fixed:n=2");
    EXPECT_EQ(fixed.steps, (std::vector<std::int32_t>{0, 1, 2, 2, 0, 1, 2, 2}));
    for (const char* spec :
         {"oracle", "entropy:theta=1", "entropy_difference:theta=0.5", "argmax_stable:n=1"}) {
        const ReplayResult result = replayed(table, spec);
        for (std::size_t i = 0; i < 8; ++i) {
            EXPECT_LE(result.steps[i], table.ran[i]) << spec;
        }
    }
}

TEST(Replay, TheOracleTakesTheFirstOfEquals) {
    ReplayTable table = small_table();
    for (std::int64_t k = 0; k <= 3; ++k) {
        table.columns.column(PolicySignal::nll, k)[0] = k == 0 ? 2.0F : 1.0F;
    }
    table.finish();
    const ReplayResult oracle = replayed(table, "oracle");
    EXPECT_EQ(oracle.steps[0], 1);
    EXPECT_EQ(oracle.steps[3], 0); // no target, so nothing is lost by stopping
    for (const char* other : {"full", "fixed:n=0", "entropy:theta=2"}) {
        EXPECT_LE(oracle.mean_nll, replayed(table, other).mean_nll + 1e-12) << other;
    }
}

TEST(Replay, RulesThatLookBackStartAtStepOne) {
    const ReplayTable table = small_table();
    // Everything changes by less than that: they stop as early as they may.
    EXPECT_EQ(replayed(table, "entropy_difference:theta=1000").mean_steps, 1);
    EXPECT_EQ(replayed(table, "entropy:theta=1000").mean_steps, 0);
    // More transitions than there are: never.
    EXPECT_EQ(replayed(table, "argmax_stable").mean_steps, 3);
    const ReplayResult stable = replayed(table, "argmax_stable:n=1");
    for (std::size_t i = 0; i < 8; ++i) {
        std::int32_t expected = 3;
        for (std::int32_t k = 2; k >= 1; --k) {
            if (table.columns.column(PolicySignal::argmax, k)[i] ==
                table.columns.column(PolicySignal::argmax, k - 1)[i]) {
                expected = k;
            }
        }
        EXPECT_EQ(stable.steps[i], expected);
    }
}

TEST(Replay, FlopsFollowTheChoice) {
    ReplayTable table = small_table();
    FlopsModel model;
    model.steps = {1000, 1000, 1000, 1000};
    model.key = 10;
    model.windows = {0};
    model.decisions = {0, 0, 0};
    model.read_out = 100;
    table.flops = model;
    table.windows = {plan_windows(4, 8, 4), plan_windows(4, 8, 4)};
    const ReplayResult result = replayed(table, "fixed:n=1");
    // Positions start anew in the second sequence.
    EXPECT_EQ(result.flops, (std::vector<std::int64_t>{2120, 2140, 2160, 2180, 2120, 2140, 2160, 2180}));
    EXPECT_EQ(result.mean_flops, 2150);
}

TEST(Replay, ASignalOfOnesOwnStopsWhereItIsSaid) {
    ReplayTable table = small_table();
    const PolicySignal own = policy_signal("my_gate");
    table.columns.add(own);
    for (std::int64_t k = 0; k <= 3; ++k) {
        for (std::size_t i = 0; i < 8; ++i) {
            table.columns.column(own, k)[i] = static_cast<float>(token_draw(77, k, i)) - 0.5F;
        }
    }
    table.columns.column(own, 1)[2] = nan_f; // a step that did not run stops nobody
    for (const double theta : {-0.3, 0.0, 0.2, 9.0}) {
        std::vector<std::int32_t> below(8, 3), above(8, 3);
        for (std::size_t i = 0; i < 8; ++i) {
            for (std::int32_t k = 2; k >= 0; --k) {
                const float value = std::as_const(table.columns).column(own, k)[i];
                below[i] = value < static_cast<float>(theta) ? k : below[i];
                above[i] = value >= static_cast<float>(theta) ? k : above[i];
            }
        }
        const std::string digits = std::to_string(theta);
        EXPECT_EQ(replayed(table, "signal:name=my_gate,theta=" + digits).steps, below);
        EXPECT_EQ(replayed(table, "signal:name=my_gate,stops=above,theta=" + digits).steps, above);
    }
    // A signal that another policy looks at is the same rule.
    EXPECT_EQ(replayed(table, "signal:name=entropy,theta=2").steps, replayed(table, "entropy:theta=2").steps);
    EXPECT_TRUE(table.can(*find_policy_kind("signal:name=my_gate")));
    EXPECT_FALSE(table.can(*find_policy_kind("signal:name=none")));
}

TEST(Replay, EveryMistakeHasItsSentence) {
    const ReplayTable table = small_table();
    const struct {
        const char* policy;
        std::vector<const char*> says;
    } cases[] = {
        {"calm_margin:lambda=0.9", {"t.ponder#run", " margin ", "--record steps", "[policy.unsuited]"}},
        {"calm_cosine:lambda=0.9", {"cosine", "--record steps"}},
        {"kl", {"kl_previous_current", "--record steps"}},
        {"latent_difference", {" latent_difference ", "--record steps"}},
        {"learned", {"[policy.unsuited]"}},
        {"signal:name=my_gate,theta=1", {" my_gate ", "[policy.unsuited]"}},
        {"signal:name=cosine,theta=1", {"cosine", "--record steps"}},
        {"learned:theta=0.5", {"[policy.unsuited]"}},
        {"uniform", {"uniform:rate=1.2"}},
        {"geometric:seed=3", {"geometric:rate=1.2"}},
        {"uniform:rate=3.5", {"3.5", "[policy.value]"}},
        {"fixed:n=4", {" 3", " 4", "[policy.value]"}},
    };
    for (const auto& [policy, says] : cases) {
        const std::string sentence = testing::error_of([&] { replayed(table, policy); });
        for (const char* part : says) {
            EXPECT_NE(sentence.find(part), std::string::npos) << policy << ": " << sentence;
        }
    }
}

// From a trace.

struct TraceOptions {
    std::string method = "adaptive_latent_cot";
    std::int64_t max_steps = 2;
    std::vector<std::int64_t> nll_shape{3, 3};
    std::string nll_name = signal::nll;
    bool targets = true;
    std::size_t flops_of_steps = 0; ///< 0: as sample_run says
    std::string choices = R"({"threshold": 0.25})";
};

std::filesystem::path write_trace(const testing::TemporaryFolder& folder, const TraceOptions& options) {
    std::filesystem::path path = folder / "t.ponder";
    TraceWriter writer(path);
    RunInfo run = testing::sample_run("run");
    run.method = options.method;
    run.max_steps = options.max_steps;
    run.choices = options.choices;
    if (options.flops_of_steps > 0) {
        FlopsModel model;
        model.steps.assign(options.flops_of_steps, 1000);
        model.windows = {0};
        model.decisions.assign(options.flops_of_steps - 1, 0);
        run.flops_model = model.to_json();
        run.step_unit = "step"; // the model above is of one
    }
    writer.begin_run(run, {{options.nll_name, {"token", "step"}, "nats", "NLL", "."},
                           {signal::gate, {"token", "step"}, "", "Gate", "."}});
    TokenColumns tokens = testing::sample_tokens(1, 0, 3, 3);
    tokens.steps.assign(3, 2);
    if (!options.targets) {
        tokens.nll.assign(3, nan_f);
    }
    std::vector<float> nll(static_cast<std::size_t>(options.nll_shape[0] * options.nll_shape[1]));
    for (std::size_t i = 0; i < nll.size(); ++i) {
        nll[i] = static_cast<float>(i);
    }
    testing::add_sequence(
        writer, "one", testing::sample_text(3), tokens,
        {{options.nll_name, testing::packed(DType::f32, options.nll_shape, nll)},
         {signal::gate, testing::packed<float>(DType::f32, {3, 2}, {0.5F, 0.4F, 0.2F, 1.0F, 0.9F, 0.9F})}});
    writer.end_run(1);
    writer.finish();
    return path;
}

ReplayTable load(const std::filesystem::path& path) {
    const TraceReader reader = TraceReader::open(path);
    return ReplayTable::load(reader, find_run(reader, "run"));
}

TEST(ReplayTable, TakesTheCostsOfARunWithAsManySteps) {
    for (const std::size_t steps : {2U, 3U, 4U}) { // with step 0, of K = 2
        const testing::TemporaryFolder folder;
        TraceOptions options;
        options.flops_of_steps = steps;
        const ReplayTable table = load(write_trace(folder, options));
        EXPECT_EQ(table.flops.has_value(), steps == 3) << steps;
        EXPECT_EQ(table.windows.size(), steps == 3 ? 1U : 0U) << steps;
    }
}

TEST(ReplayTable, ReadsTheOwnRuleOfTheMethod) {
    const testing::TemporaryFolder folder;
    const ReplayTable table = load(write_trace(folder, {}));
    EXPECT_EQ(table.tokens(), 3U);
    EXPECT_EQ(table.columns.tokens(), 3U);
    EXPECT_EQ(table.context.own_threshold, 0.25);
    EXPECT_FALSE(table.halted);
    // Reaches 0.5, 0.2 | 0.2, .. | 0.9, 0.81 against 0.25.
    EXPECT_EQ(replayed(table, "learned").steps, (std::vector<std::int32_t>{1, 0, 2}));
    EXPECT_EQ(table.context.learned_rate, 0.5); // the last token has no target
    EXPECT_EQ(replayed(table, "learned:theta=0.85").steps, (std::vector<std::int32_t>{0, 0, 1}));
    EXPECT_EQ(replayed(table, "learned:theta=0").steps, std::vector<std::int32_t>(3, 2));
    EXPECT_NO_THROW(replayed(table, "uniform"));
    EXPECT_EQ(replayed(table, "fixed:n=1").nll[1], 4);
}

TEST(ReplayTable, ARunsOwnRuleIsLearned) {
    // Gates 0.5, 0.4 | 0.2, 1.0 | 0.9, 0.9.
    const auto steps_of = [](const std::string& method, const std::string& rule) {
        const testing::TemporaryFolder folder;
        const ReplayTable table = load(
            write_trace(folder, {.method = method,
                                 .choices = R"({"threshold": 0.25, "exit_step": 1, "rule": )" + rule + "}"}));
        return replayed(table, "learned").steps;
    };
    using Steps = std::vector<std::int32_t>;
    EXPECT_EQ(steps_of("mine", R"({"signal": "gate", "stops": "below", "theta": 0.45})"), (Steps{1, 0, 2}));
    EXPECT_EQ(steps_of("mine", R"({"signal": "gate", "stops": "above", "theta": 0.5})"), (Steps{0, 1, 0}));
    // In the place of the method's own, which multiplies, and of the step that is named beside it.
    EXPECT_EQ(steps_of("adaptive_latent_cot", R"({"signal": "gate", "stops": "below", "theta": 0.45})"),
              (Steps{1, 0, 2}));
    for (const char* const wrong :
         {R"({"signal": "gate", "stops": "at", "theta": 0.5})",
          R"({"signal": 1, "stops": "below", "theta": 1})", R"({"signal": "gate", "stops": "below"})",
          R"("gate")", R"({"signal": "none", "stops": "below", "theta": 0.5})"}) {
        EXPECT_THROW(steps_of("mine", wrong), InputError) << wrong; // a stranger's text: no rule
    }
}

TEST(ReplayTable, ReadsSignalsOfTheRunsOwn) {
    const testing::TemporaryFolder folder;
    const std::filesystem::path path = write_trace(folder, {.method = "mine"});
    const TraceReader reader = TraceReader::open(path);
    const RunInfo run = find_run(reader, "run");
    const ReplayTable table = ReplayTable::load(reader, run);
    EXPECT_EQ(replayed(table, "signal:name=gate,theta=0.45").steps, (std::vector<std::int32_t>{1, 0, 2}));
    std::vector<std::string> names;
    for (const PolicyKind* kind : table.kinds()) {
        names.push_back(kind->name);
    }
    EXPECT_EQ(std::count(names.begin(), names.end(), "signal:name=gate,stops=below"), 1);
    EXPECT_EQ(std::count(names.begin(), names.end(), "signal:name=gate,stops=above"), 1);
    // Only what is asked for.
    const auto only = [&](PolicySignal signal) {
        return ReplayTable::load(reader, run, {}, {}, {}, {signal}).columns;
    };
    EXPECT_FALSE(only(PolicySignal::entropy).has(policy_signal("gate")));
    EXPECT_TRUE(only(PolicySignal::entropy).has(PolicySignal::nll)); // what every replay reads
    EXPECT_TRUE(only(policy_signal("gate")).has(policy_signal("gate")));
}

TEST(ReplayTable, TakesWhatTheRunSaysOfLengthsAndTheOwnExit) {
    const testing::TemporaryFolder folder;
    const ReplayTable table =
        load(write_trace(folder, {.choices = R"({"planned_lengths": [9], "exit_step": 1})"}));
    EXPECT_EQ(table.places.at(0).length, 9U);
    EXPECT_EQ(replayed(table, "learned").steps, std::vector<std::int32_t>(3, 1));
    const testing::TemporaryFolder fewer; // steps than the exit's
    EXPECT_EQ(load(write_trace(fewer, {.choices = R"({"exit_step": 3})"})).context.exit_step, 2);
    // A stranger's: nothing that cannot be.
    for (const char* wrong : {R"({"planned_lengths": [2]})", R"({"planned_lengths": [-9]})",
                              R"({"planned_lengths": [99999999999], "exit_step": -1})",
                              R"({"planned_lengths": {"0": 9}, "exit_step": "1"})"}) {
        const testing::TemporaryFolder other;
        const ReplayTable usual = load(write_trace(other, {.choices = wrong}));
        EXPECT_EQ(usual.places.at(0).length, 3U) << wrong;
        EXPECT_FALSE(usual.context.exit_step) << wrong;
    }
}

TEST(ReplayTable, OtherMethodsCompareWhatTheyRecordAfterEachStep) {
    for (const char* method : {"adaponderlm", "ponderlm3"}) {
        const testing::TemporaryFolder folder;
        TraceOptions options;
        options.method = method;
        // 0.5, 0.4 | 0.2, 1 | 0.9, 0.9 against 0.25 and 0.45.
        const ReplayTable table = load(write_trace(folder, options));
        EXPECT_EQ(replayed(table, "learned").steps, (std::vector<std::int32_t>{2, 0, 2}));
        EXPECT_EQ(replayed(table, "learned:theta=0.45").steps, (std::vector<std::int32_t>{1, 0, 2}));
    }
}

TEST(ReplayTable, AMethodWithoutARuleHasNone) {
    const testing::TemporaryFolder folder;
    TraceOptions options;
    options.method = "ponderlm";
    const ReplayTable table = load(write_trace(folder, options));
    EXPECT_TRUE(std::isnan(table.context.own_threshold));
    EXPECT_FALSE(table.can(*PolicySpec::parse("learned").kind));
    const testing::TemporaryFolder other; // nor has one that does not say its threshold
    EXPECT_TRUE(std::isnan(load(write_trace(other, {.choices = {}})).context.own_threshold));
    EXPECT_TRUE(table.can(*PolicySpec::parse("oracle").kind));
}

TEST(ReplayTable, EveryMistakeHasItsSentence) {
    struct Case {
        TraceOptions options;
        const char* says;
    };
    const auto changed = [](auto change) {
        TraceOptions options;
        change(options);
        return options;
    };
    const Case cases[] = {
        {changed([](TraceOptions& o) { o.nll_name = "other"; }), "--record steps"},
        {changed([](TraceOptions& o) { o.max_steps = 0; }), "--policy full"},
        {changed([](TraceOptions& o) { o.max_steps = 1'000'000; }), "4096"},
        {changed([](TraceOptions& o) {
             o.nll_shape = {3, 5};
         }),
         "[run.unsuited]"},
        {changed([](TraceOptions& o) { o.max_steps = 1; }), "[run.unsuited]"},
        {changed([](TraceOptions& o) { o.targets = false; }), "[run.unscored]"},
    };
    for (const Case& one : cases) {
        const testing::TemporaryFolder folder;
        const std::filesystem::path path = write_trace(folder, one.options);
        const std::string refusal = testing::error_of([&] { load(path); });
        EXPECT_NE(refusal.find(one.says), std::string::npos) << refusal;
        EXPECT_NE(refusal.find("t.ponder"), std::string::npos) << refusal;
    }
}

} // namespace
} // namespace ponderscope
