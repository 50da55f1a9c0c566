// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/stats/paired.h"
#include "core/stats/rank_correlation.h"
#include "core/stats/run_study.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/correlation.h"
#include "tests/support/errors.h"
#include "tests/support/notices.h"
#include "tests/support/test_data.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>

namespace ponderscope {
namespace {

using namespace testing;

struct Given {
    RunInfo run;
    std::vector<TokenColumns> sequences;
    std::vector<std::int64_t> text_tokens;
    bool complete = true;
};

/// Same ids for every seed, other losses.
TokenColumns tokens_with_losses(std::uint64_t seed, std::int64_t count, std::int64_t total) {
    TokenColumns tokens = sample_tokens(seed, 0, count, total);
    const TokenColumns ids = sample_tokens(1, 0, count, total);
    tokens.id = ids.id;
    return tokens;
}

void write(const std::filesystem::path& path, const Given& given) {
    TraceWriter writer(path);
    writer.begin_run(given.run, {});
    for (std::size_t s = 0; s < given.sequences.size(); ++s) {
        add_sequence(writer, "s", sample_text(given.text_tokens[s]), given.sequences[s]);
    }
    if (given.complete) {
        writer.end_run(1);
    }
    writer.finish();
}

class Paired : public ::testing::Test {
protected:
    Given a{sample_run("a"), {tokens_with_losses(1, 900, 900), tokens_with_losses(2, 300, 300)}, {900, 300}};
    Given b{sample_run("b"), {tokens_with_losses(3, 900, 900), tokens_with_losses(4, 300, 300)}, {900, 300}};
    TemporaryFolder folder;

    PairedSample pair() {
        std::filesystem::remove(folder / "a.ponder");
        std::filesystem::remove(folder / "b.ponder");
        write(folder / "a.ponder", a);
        write(folder / "b.ponder", b);
        const TraceReader first = TraceReader::open(folder / "a.ponder");
        const TraceReader second = TraceReader::open(folder / "b.ponder");
        return pair_runs(first, find_run(first, "a"), second, find_run(second, "b"));
    }
    std::string refusal() {
        return error_of([&] { (void)pair(); });
    }
};

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST_F(Paired, ComparesWhatBothScored) {
    const PairedSample sample = pair();
    EXPECT_EQ(sample.layout.stretches, (std::vector<std::int64_t>{899, 299}));
    EXPECT_EQ(sample.only_a, 0);
    EXPECT_TRUE(sample.notices.empty());
    BootstrapOptions options{.replicates = 1000};
    const PairedComparison result = compare_paired(sample, options);
    EXPECT_EQ(result.tokens, 1198);
    EXPECT_NEAR(result.mean_a.value, mean(sample.a), 1e-12);
    EXPECT_NEAR(result.difference.value, mean(sample.a) - mean(sample.b), 1e-12);
    EXPECT_LT(result.difference.low, result.difference.value);
    EXPECT_GT(result.difference.high, result.difference.value);
    EXPECT_NEAR(result.perplexity_a.value, std::exp(mean(sample.a)), 1e-9);
    EXPECT_NEAR(result.perplexity_ratio.value, result.perplexity_a.value / result.perplexity_b.value, 1e-12);
    EXPECT_NEAR(result.perplexity_ratio.high, std::exp(result.difference.high), 1e-12);
    EXPECT_NEAR(result.pearson.value, pearson(sample.a, sample.b), 1e-12);
    EXPECT_LT(result.pearson.low, result.pearson.high);
    EXPECT_EQ(result.resampling.tokens, 1198);
    EXPECT_EQ(result.resampling.stretches, 2);
    const auto better = std::inner_product(sample.a.begin(), sample.a.end(), sample.b.begin(), 0,
                                           std::plus<>(), std::greater<>());
    EXPECT_DOUBLE_EQ(result.share_b_better, better / 1198.0);
    for (std::size_t i = 0; i < 899; ++i) {
        ASSERT_EQ(sample.right_a[i], a.sequences[0].rank[i] == 1 ? 1 : 0) << i;
        ASSERT_EQ(sample.right_b[i], b.sequences[0].rank[i] == 1 ? 1 : 0) << i;
    }
    const double bytes = std::accumulate(sample.bytes.begin(), sample.bytes.end(), 0.0);
    EXPECT_EQ(bytes, static_cast<double>(sample_text(900).size() + sample_text(300).size()) - 8);
    EXPECT_NEAR(result.bits_per_byte_b.value, mean(sample.b) * 1198 / bytes / std::log(2.0), 1e-12);
    // The same again, whatever the number of threads.
    options.threads = 5;
    const PairedComparison again = compare_paired(sample, options);
    EXPECT_EQ(again.difference.low, result.difference.low);
    EXPECT_EQ(again.pearson.high, result.pearson.high);
    EXPECT_EQ(again.bits_per_byte_a.low, result.bits_per_byte_a.low);
}

TEST_F(Paired, IdenticalRunsDifferByNothing) {
    b.sequences = a.sequences;
    const PairedComparison result = compare_paired(pair(), {.replicates = 200});
    EXPECT_EQ(result.difference.value, 0);
    EXPECT_EQ(result.difference.low, 0);
    EXPECT_EQ(result.difference.high, 0);
    EXPECT_EQ(result.perplexity_ratio.value, 1);
    EXPECT_NEAR(result.pearson.value, 1, 1e-12);
    EXPECT_EQ(result.share_b_better, 0);
    ASSERT_FALSE(result.notices.empty());
    EXPECT_EQ(result.notices.back().id, NoticeId::compare_same_nll);
}

TEST(PairedBlocks, AreAsLongAsTheDifferenceRemembers) {
    // What the runs share is noise, what sets them apart changes slowly: each alone asks for short blocks.
    PairedSample sample;
    double slow = 0;
    for (std::uint64_t i = 0; i < 4000; ++i) {
        slow = 0.97 * slow + unit_interval(splitmix64(3, i)) - 0.5;
        const double noise = 20 * (unit_interval(splitmix64(4, i)) - 0.5);
        sample.a.push_back(30 + noise + 0.1 * slow);
        sample.b.push_back(30 + noise - 0.1 * slow);
        sample.bytes.push_back(1);
        sample.layout.add(0, i > 0);
    }
    BootstrapOptions options{.replicates = 200};
    const std::span<const double> alone[] = {sample.a};
    EXPECT_LT(choose_resampling(sample.layout, alone, options).block, 16);
    EXPECT_GT(compare_paired(sample, options).resampling.block, 40);
}

TEST_F(Paired, StepsGoTogetherWithLossesOverTheStretchesOfTheText) {
    write(folder / "a.ponder", a);
    const TraceReader reader = TraceReader::open(folder / "a.ponder");
    std::vector<double> steps;
    std::vector<double> nll;
    for (const TokenColumns& sequence : a.sequences) {
        for (std::size_t i = 0; i + 1 < sequence.size(); ++i) {
            steps.push_back(sequence.steps[i]);
            nll.push_back(static_cast<double>(sequence.nll[i]));
        }
    }
    BootstrapOptions options{.block = 32, .replicates = 200};
    const Estimate want = spearman_with_interval(steps, nll, {899, 299}, options);
    const std::vector<StepsCorrelation> found =
        study_run(reader, find_run(reader, "a"), {.bootstrap = options}).correlations;
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].with, "NLL");
    EXPECT_EQ(found[0].tokens, 1198);
    EXPECT_NEAR(found[0].rho.value, want.value, 1e-12);
    EXPECT_NEAR(found[0].rho.low, want.low, 1e-12);
    EXPECT_NEAR(found[0].rho.high, want.high, 1e-12);
}

TEST_F(Paired, PartialRunsAreComparedOverWhatIsCommon) {
    b.sequences = {tokens_with_losses(3, 500, 900)};
    b.text_tokens = {900};
    b.complete = false;
    const PairedSample sample = pair();
    EXPECT_EQ(sample.a.size(), 500U);
    EXPECT_EQ(sample.only_a, 698);
    EXPECT_EQ(sample.only_b, 0);
    NoticeIds expected{NoticeId::compare_common_tokens, NoticeId::run_partial};
    EXPECT_EQ(ids_of(sample.notices), expected);
    const PairedComparison result = compare_paired(sample, {.replicates = 100});
    expected.push_back(NoticeId::stats_same_texts);
    EXPECT_EQ(ids_of(result.notices), expected);
}

TEST_F(Paired, HolesSplitStretches) {
    a.sequences[0].nll[100] = std::nanf("");
    b.sequences[0].nll[200] = std::nanf("");
    const PairedSample sample = pair();
    EXPECT_EQ(sample.layout.stretches, (std::vector<std::int64_t>{100, 99, 698, 299}));
    EXPECT_EQ(sample.only_a, 1);
    EXPECT_EQ(sample.only_b, 1);
}

TEST_F(Paired, OtherTextsAreRefused) {
    b.run.text_digest = "another";
    b.run.text_source = "other.txt";
    EXPECT_NE(refusal().find("passage.txt"), std::string::npos) << refusal();
    EXPECT_NE(refusal().find("other.txt"), std::string::npos) << refusal();
    EXPECT_TRUE(refusal().ends_with("[compare.text]")) << refusal();
    b.run = sample_run("b");
    b.run.tokenizer_digest = "another";
    const std::vector<std::int32_t> ids = b.sequences[1].id;
    b.sequences[1].id[17] ^= 1;
    EXPECT_TRUE(refusal().ends_with("[compare.tokens]")) << refusal();
    b.sequences[1].id = ids;
    EXPECT_EQ(pair().a.size(), 1198U) << "other digests, and the same tokens";
    b.run = sample_run("b");
    b.sequences[1].id[17] ^= 1;
    EXPECT_NE(refusal().find("token 17 of sequence 1"), std::string::npos) << refusal();
    b.sequences = {};
    EXPECT_TRUE(refusal().ends_with("[run.unscored]")) << refusal();
}

TEST_F(Paired, OneRunAloneAndItsSteps) {
    write(folder / "a.ponder", a);
    const TraceReader reader = TraceReader::open(folder / "a.ponder");
    const RunInfo run = find_run(reader, "");
    const RunEstimate estimate = estimate_run(reader, run, {.replicates = 300});
    EXPECT_EQ(estimate.scored_tokens, run.scored_tokens);
    EXPECT_NEAR(estimate.mean_nll.value, run.nll_sum / static_cast<double>(run.scored_tokens), 1e-12);
    EXPECT_NEAR(estimate.mean_steps.value, run.steps_sum / static_cast<double>(run.scored_tokens), 1e-12);
    EXPECT_NEAR(estimate.bits_per_byte.value,
                run.nll_sum / static_cast<double>(run.scored_bytes) / std::log(2.0), 1e-12);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_THROW((void)estimate_run(reader, run, {.replicates = 300, .stop = stop.get_token()}), Cancelled);
}

TEST_F(Paired, LongSequencesAreReadInPages) {
    constexpr std::int64_t tokens = (1 << 16) + 100;
    write_trace(folder / "long.ponder", [](TraceWriter& writer) {
        writer.begin_run(sample_run("long"), {});
        add_sequence(writer, "s", sample_text(tokens), sample_tokens(5, 0, tokens, tokens));
        writer.end_run(1);
    });
    const TraceReader reader = TraceReader::open(folder / "long.ponder");
    const RunInfo run = find_run(reader, "");
    const RunEstimate estimate = estimate_run(reader, run, {.replicates = 20});
    EXPECT_EQ(estimate.scored_tokens, run.scored_tokens);
    EXPECT_NEAR(estimate.bits_per_byte.value,
                run.nll_sum / static_cast<double>(run.scored_bytes) / std::log(2.0), 1e-12);
    const auto correlations = study_run(reader, run, {.bootstrap = {.replicates = 20}}).correlations;
    EXPECT_EQ(correlations.at(0).tokens, run.scored_tokens);
}

TEST_F(Paired, AShiftOfEveryTokenIsFound) {
    const PairedSample sample = pair();
    const PairedComparison result = compare_paired(sample, {.replicates = 500});
    EXPECT_NEAR(result.bits_per_byte_difference.value,
                result.bits_per_byte_a.value - result.bits_per_byte_b.value, 1e-12);
    EXPECT_EQ(result.resampling.unit, ResamplingUnit::blocks);
    EXPECT_EQ(result.resampling.clusters, 2);
    EXPECT_GT(result.difference.detectable, 2 * result.difference.standard_error);
    PairedSample shifted = sample;
    shifted.b = shifted.a;
    for (std::size_t i = 0; i < shifted.b.size(); ++i) {
        shifted.b[i] += 0.1 + 0.01 * static_cast<double>(i % 7);
    }
    EXPECT_LT(compare_paired(shifted, {.block = 50, .replicates = 100}).p, 1e-5);
}

TEST_F(Paired, FlipsOfTheTopToken) {
    PairedSample sample = pair();
    sample.right_a.assign(sample.a.size(), 0);
    sample.right_b.assign(sample.a.size(), 0);
    for (std::size_t i = 0; i < 400; ++i) {
        sample.right_a[i] = i < 100 || i >= 300 ? 1 : 0; // 200 right, 100 of them also by B
        sample.right_b[i] = i < 150 ? 1 : 0;
    }
    const PairedComparison result = compare_paired(sample, {.block = 25, .replicates = 500});
    ASSERT_TRUE(result.flips);
    EXPECT_EQ(result.flips->both_right, 100);
    EXPECT_EQ(result.flips->only_a, 100);
    EXPECT_EQ(result.flips->only_b, 50);
    EXPECT_EQ(result.flips->both_wrong, 1198 - 250);
    EXPECT_NEAR(result.flips->difference.value, 50.0 / 1198, 1e-12);
    EXPECT_LT(result.flips->mcnemar, 1e-4); // as if tokens were independent: they stand together
    EXPECT_GT(result.flips->p, 0.2);
    sample.right_b.clear();
    EXPECT_FALSE(compare_paired(sample, {.replicates = 100}).flips);
}

TEST_F(Paired, RanksThatNobodyKnewAreNoErrors) {
    for (TokenColumns& tokens : b.sequences) {
        tokens.rank.assign(tokens.rank.size(), 0);
    }
    const PairedSample sample = pair();
    EXPECT_TRUE(sample.right_a.empty() && sample.right_b.empty());
    EXPECT_FALSE(compare_paired(sample, {.replicates = 100}).flips);
    b.sequences[0].rank = a.sequences[0].rank; // known of one sequence alone
    EXPECT_FALSE(compare_paired(pair(), {.replicates = 100}).flips);
}

TEST(PairedSpeed, TenThousandReplicatesOfAMillionTokens) {
    PairedSample sample;
    for (std::uint64_t t = 0; t < 1'000'000; ++t) {
        sample.a.push_back(unit_interval(splitmix64(1, t)));
        sample.b.push_back(unit_interval(splitmix64(2, t)));
        sample.bytes.push_back(4);
    }
    sample.layout = std::vector<std::int64_t>(10'000, 100);
    std::vector<double> apart;
    for (std::size_t t = 0; t < sample.a.size(); ++t) {
        apart.push_back(sample.a[t] - sample.b[t]);
    }
    const auto seconds_of = [](const auto& work) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    PairedComparison result;
    const double everything = seconds_of([&] { result = compare_paired(sample); });
    Estimate difference;
    const double alone = seconds_of([&] {
        const Statistic mean_difference = [](std::span<const double> sums, std::int64_t tokens) {
            return sums[0] / static_cast<double>(tokens);
        };
        difference = bootstrap(PrefixSums(apart, 1, sample.layout), {&mean_difference, 1}).front();
    });
    std::printf("1,000,000 tokens in 10,000 clusters, 10,000 replicates: the difference %.2f s, every "
                "statistic of a comparison %.2f s\n",
                alone, everything);
    EXPECT_EQ(result.resampling.unit, ResamplingUnit::clusters);
    EXPECT_NEAR(difference.low, result.difference.low, 1e-12);
    EXPECT_LT(result.difference.low, result.difference.high);
    EXPECT_LT(alone, 20); // ten times the time of two cores: minutes would mean that tokens are touched again
}

} // namespace
} // namespace ponderscope
