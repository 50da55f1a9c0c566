// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/rerun_difference.h"

#include "core/trace/recorded_choices.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/errors.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace ponderscope {
namespace {

RunInfo run_of(const std::string& policy) {
    RunInfo run = testing::sample_run("r");
    run.policy = policy;
    run.tokens = 10;
    run.complete = true;
    return run;
}

TEST(IsRerunOf, TheSameModelAndTokensUnderThatPolicy) {
    const std::string policy = "entropy:theta=1.5";
    const RunInfo base = run_of("full");
    EXPECT_TRUE(is_rerun_of(run_of(policy), base, policy));
    EXPECT_FALSE(is_rerun_of(run_of("full"), base, policy));
    const std::function<void(RunInfo&)> others[] = {[](RunInfo& run) { run.checkpoint_digest += "x"; },
                                                    [](RunInfo& run) { run.method = "looped"; },
                                                    [](RunInfo& run) { run.depth_mixing = "mhc"; },
                                                    [](RunInfo& run) { run.scoring = "jacobi:3"; },
                                                    [](RunInfo& run) { run.dtype = "bfloat16"; },
                                                    [](RunInfo& run) { ++run.context; },
                                                    [](RunInfo& run) { ++run.stride; },
                                                    [](RunInfo& run) { ++run.max_steps; },
                                                    [](RunInfo& run) { run.step_unit = "step"; },
                                                    [](RunInfo& run) { ++run.tokens; },
                                                    [](RunInfo& run) { run.complete = false; }};
    int number = 0;
    for (const auto& change : others) {
        RunInfo other = run_of(policy);
        change(other);
        EXPECT_FALSE(is_rerun_of(other, base, policy)) << "change " << number;
        ++number;
    }
}

TEST(IsRerunOf, TakesExitsAndKeepsTheStart) {
    const std::string policy = "entropy:theta=1.5";
    const auto with = [](const std::string& of, const std::string& choices) {
        RunInfo run = run_of(of);
        run.choices = choices;
        return run;
    };
    // What exits that only choose the read-out did, a rerun takes; shared and skip are kept.
    const RunInfo read_out = with("learned", R"({"kv": "full", "initial_state": "random:7"})");
    EXPECT_EQ(kv_of_rerun(read_out), "per_step");
    EXPECT_TRUE(
        is_rerun_of(with(policy, R"({"kv": "per_step", "initial_state": "random:7"})"), read_out, policy));
    EXPECT_FALSE(
        is_rerun_of(with(policy, R"({"kv": "full", "initial_state": "random:7"})"), read_out, policy));
    EXPECT_FALSE(
        is_rerun_of(with(policy, R"({"kv": "shared", "initial_state": "random:7"})"), read_out, policy));
    EXPECT_FALSE(
        is_rerun_of(with(policy, R"({"kv": "per_step", "initial_state": "zero"})"), read_out, policy));
    const RunInfo shared = with("full", R"({"kv": "shared"})");
    EXPECT_EQ(kv_of_rerun(shared), "shared");
    EXPECT_TRUE(is_rerun_of(with(policy, R"({"kv": "shared"})"), shared, policy));
    EXPECT_FALSE(is_rerun_of(with(policy, R"({"kv": "per_step"})"), shared, policy));
    // Nothing halts: every token ran all steps either way.
    EXPECT_TRUE(
        is_rerun_of(with("full", R"({"kv": "full"})"), with("full", R"({"kv": "per_step"})"), "full"));
    // Earlier versions kept none of it, and what is no text of ours says nothing.
    EXPECT_TRUE(is_rerun_of(with(policy, ""), read_out, policy));
    EXPECT_TRUE(is_rerun_of(with(policy, R"({"kv": 3})"), with("full", "[1"), policy));
    // Another choice may be asked for.
    EXPECT_TRUE(is_rerun_of(with(policy, R"({"kv": "per_step"})"), shared, policy, "per_step"));
    EXPECT_FALSE(is_rerun_of(with(policy, R"({"kv": "shared"})"), shared, policy, "per_step"));
    EXPECT_FALSE(is_rerun_of(with("full", R"({"kv": "full"})"), read_out, "full", "shared"))
        << "the last step at every step is something else, also where nobody stops";
}

TEST(IsRerunOf, TheSameChangesOfTheModel) {
    const std::string policy = "entropy:theta=1.5";
    const auto changed = [](const std::string& of, const std::string& choices, const std::string& notices) {
        RunInfo run = run_of(of);
        run.choices = choices;
        run.notices = notices;
        return run;
    };
    const std::string patch = R"({"patches": [{"to": {"token": 1}, "from": "zero"}]})";
    const std::string other = R"({"patches": [{"to": {"token": 2}, "from": "zero"}]})";
    const std::string ablated = R"(["A notice.", "Changed for this run: layer 1 is left out."])";
    const RunInfo plain = changed("full", "{}", "[]");
    EXPECT_TRUE(is_rerun_of(changed(policy, "{}", R"(["Another notice."])"), plain, policy));
    EXPECT_FALSE(is_rerun_of(changed(policy, patch, "[]"), plain, policy));
    EXPECT_FALSE(is_rerun_of(changed(policy, "{}", ablated), plain, policy));
    EXPECT_FALSE(is_rerun_of(plain, changed("learned", patch, "[]"), "full"));
    // What was changed alike is compared.
    EXPECT_TRUE(is_rerun_of(changed(policy, patch, "[]"), changed("full", patch, "[]"), policy));
    EXPECT_FALSE(is_rerun_of(changed(policy, patch, "[]"), changed("full", other, "[]"), policy));
    EXPECT_TRUE(is_rerun_of(changed(policy, "", ablated), changed("full", "", ablated), policy));
}

TEST(IsRerunOf, StartStatesOfAFileAreTheirNumbers) {
    const std::string policy = "entropy:theta=1.5";
    const auto from = [](const std::string& of, const std::string& file, const std::string& digest) {
        RunInfo run = run_of(of);
        run.choices = R"({"initial_state": ")" + file + R"(", "initial_state_digest": ")" + digest + "\"}";
        return run;
    };
    const RunInfo base = from("full", "s.safetensors", "ab");
    EXPECT_TRUE(is_rerun_of(from(policy, "/moved/s.safetensors", "ab"), base, policy));
    EXPECT_FALSE(is_rerun_of(from(policy, "s.safetensors", "cd"), base, policy));
    EXPECT_TRUE(is_rerun_of(from(policy, "s.safetensors", ""), base, policy)) << "earlier versions kept none";
    EXPECT_FALSE(is_rerun_of(from(policy, "t.safetensors", ""), base, policy));
}

class RerunDifferenceOfTwoRuns : public ::testing::Test {
protected:
    /// Two sequences of 6 and 4 tokens; \p change may alter their columns before they are written.
    std::filesystem::path write(const std::string& name,
                                const std::function<void(std::size_t sequence, TokenColumns&)>& change = {},
                                std::vector<std::int64_t> lengths = {6, 4}) const {
        TraceWriter writer(folder_ / name);
        writer.begin_run(testing::sample_run(name), {});
        for (std::size_t s = 0; s < lengths.size(); ++s) {
            TokenColumns tokens = testing::sample_tokens(3 + s, 0, lengths[s], lengths[s]);
            if (change) {
                change(s, tokens);
            }
            testing::add_sequence(writer, "s", testing::sample_text(lengths[s]), tokens);
        }
        writer.end_run(1);
        writer.finish();
        return folder_ / name;
    }

    /// Against the first run's own numbers, taken for a replay's.
    [[nodiscard]] RerunDifference difference(const std::filesystem::path& rerun) const {
        const TraceReader trace = TraceReader::open(folder_ / "base");
        const TraceReader again = TraceReader::open(rerun);
        ReplayTable table;
        ReplayResult replayed;
        table.sequences = {6, 4};
        for (std::int64_t s = 0; s < 2; ++s) {
            const TokenColumns tokens = trace.tokens(1, s);
            table.ran.insert(table.ran.end(), tokens.steps.begin(), tokens.steps.end());
            replayed.nll.insert(replayed.nll.end(), tokens.nll.begin(), tokens.nll.end());
            replayed.steps.insert(replayed.steps.end(), tokens.steps.begin(), tokens.steps.end());
        }
        return rerun_difference(table, replayed, trace, trace.runs().at(0), again, again.runs().at(0));
    }

    [[nodiscard]] std::string complaint(const std::filesystem::path& rerun) const {
        return testing::error_of([&] { (void)difference(rerun); });
    }

    testing::TemporaryFolder folder_;
};

TEST_F(RerunDifferenceOfTwoRuns, SaysWhereAndHowMuch) {
    write("base");
    const RerunDifference same = difference(write("same"));
    EXPECT_EQ(same.tokens, 8) << "the last of each sequence has no target";
    EXPECT_EQ(same.difference, 0);
    EXPECT_EQ(same.largest, 0);
    EXPECT_EQ(same.steps_changed, 0);
    ASSERT_EQ(same.steps.size(), 10U);

    const RerunDifference other = difference(write("other", [](std::size_t sequence, TokenColumns& tokens) {
        if (sequence == 0) {
            tokens.nll[2] -= 0.5F;
        } else {
            tokens.nll[1] += 2;
            tokens.steps[1] += 1;
            tokens.flops[1] += 1000;
            tokens.steps[3] += 1; // no target: in no mean
        }
    }));
    EXPECT_NEAR(other.difference, 1.5 / 8, 1e-6);
    EXPECT_NEAR(other.largest, 2, 1e-6);
    EXPECT_EQ(other.largest_sequence, 1);
    EXPECT_EQ(other.largest_row, 1);
    EXPECT_EQ(other.steps_changed, 1);
    EXPECT_NEAR(other.mean_nll, same.mean_nll + 1.5 / 8, 1e-6);
    EXPECT_NEAR(other.mean_steps, same.mean_steps + 1.0 / 8, 1e-9);
    EXPECT_NEAR(other.mean_flops, same.mean_flops + 100, 1e-6);
    EXPECT_EQ(other.steps[7], same.steps[7] + 1);
    EXPECT_NEAR(other.nll[7], same.nll[7] + 2, 1e-6);
    EXPECT_EQ(other.flops[7], same.flops[7] + 1000);
    // Of equals the first is named, and the very first token is one like any other.
    EXPECT_EQ(same.largest_sequence, 0);
    EXPECT_EQ(same.largest_row, 0);
    const RerunDifference first = difference(write("first", [](std::size_t sequence, TokenColumns& tokens) {
        tokens.nll[sequence == 0 ? 0 : 1] += sequence == 0 ? 2.0F : 1.0F;
    }));
    EXPECT_NEAR(first.largest, 2, 1e-6);
    EXPECT_EQ(first.largest_sequence, 0);
    EXPECT_EQ(first.largest_row, 0);
    // By hand, over the tokens with a target.
    double nll = 0;
    double steps = 0;
    double flops = 0;
    for (std::size_t s = 0; s < 2; ++s) {
        const std::int64_t length = s == 0 ? 6 : 4;
        const TokenColumns tokens = testing::sample_tokens(3 + s, 0, length, length);
        for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
            nll += static_cast<double>(tokens.nll[i]);
            steps += tokens.steps[i];
        }
        flops +=
            static_cast<double>(std::accumulate(tokens.flops.begin(), tokens.flops.end(), std::int64_t{0}));
    }
    EXPECT_NEAR(same.mean_nll, nll / 8, 1e-6);
    EXPECT_NEAR(same.mean_steps, steps / 8, 1e-9);
    EXPECT_NEAR(same.mean_flops, flops / 10, 1e-9) << "of all tokens";
}

TEST_F(RerunDifferenceOfTwoRuns, OtherTokensAreRefused) {
    write("base");
    const auto other_id = write(
        "other", [](std::size_t sequence, TokenColumns& tokens) { tokens.id[3] += sequence == 1 ? 1 : 0; });
    EXPECT_TRUE(complaint(other_id).ends_with("[compare.tokens]")) << complaint(other_id);
    const auto fewer = write("fewer", {}, {6});
    EXPECT_NE(complaint(fewer).find(" 1 "), std::string::npos) << complaint(fewer);
    const auto unscored = write("unscored", [](std::size_t, TokenColumns& tokens) {
        tokens.nll.assign(tokens.nll.size(), std::nanf(""));
        tokens.rank.assign(tokens.rank.size(), 0);
    });
    EXPECT_TRUE(complaint(unscored).ends_with("[run.unscored]")) << complaint(unscored);
    EXPECT_EQ(complaint(write("more", {}, {6, 4, 5})), "") << "a longer run holds the same";
}

} // namespace
} // namespace ponderscope
