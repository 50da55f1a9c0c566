// SPDX-License-Identifier: GPL-3.0-or-later
// Replays of a run that is read in parts and not kept, against the same of a table of all its tokens.
#include "core/policy/replay_scan.h"

#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/policy/matched_reruns.h"
#include "core/policy/scored_rows.h"
#include "core/policy/thresholds.h"
#include "core/trace/shard.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace ponderscope {
namespace {

constexpr std::int64_t scanned_sequences = 45;
constexpr std::int64_t scanned_steps = 3;

std::int64_t length_of(std::int64_t sequence) {
    return sequence == 11 ? 40'000 : sequence == 12 ? 1 : 2'000 + 100 * sequence; // some more than a part
}

double draw(std::uint64_t purpose, std::int64_t sequence, std::int64_t position) {
    return token_draw(purpose, static_cast<std::uint64_t>(sequence), static_cast<std::uint64_t>(position));
}

/// fp32 of [tokens, steps].
SignalChunk signal_of(std::uint64_t purpose, std::int64_t sequence, std::int64_t steps, double scale) {
    SignalChunk chunk{0, DType::f32, {length_of(sequence), steps}, {}};
    std::vector<float> values;
    for (std::int64_t t = 0; t < length_of(sequence); ++t) {
        for (std::int64_t k = 0; k < steps; ++k) {
            values.push_back(static_cast<float>(
                scale * draw(purpose + static_cast<std::uint64_t>(k), sequence, t) / (1 + 0.3 * double(k))));
        }
        if (purpose == 10 && (t + 1 == length_of(sequence) || draw(1, sequence, t) < 0.01)) {
            std::fill(values.end() - steps, values.end(), std::numeric_limits<float>::quiet_NaN());
        }
    }
    chunk.data.resize(values.size() * sizeof(float));
    std::memcpy(chunk.data.data(), values.data(), chunk.data.size());
    return chunk;
}

/// Three shards of a run; scanned_sequences 3 and 4, 13 and 14, ... are of one group.
void write(const std::filesystem::path& trace) {
    FlopsModel flops;
    flops.steps = {100, 80, 80, 80};
    flops.key = 4;
    flops.windows = {0, 0};
    flops.decisions = {3, 3, 3};
    flops.read_out = 50;
    constexpr std::int64_t world = 3;
    for (std::int64_t rank = 0; rank < world; ++rank) {
        RunInfo run = testing::sample_run("r");
        run.method = "adaponderlm";
        run.step_unit = "step";
        run.flops_model = flops.to_json();
        TraceWriter writer(shard_path(trace, rank, world));
        writer.begin_run(run,
                         {{signal::nll, {"token", "step"}, "nats", "NLL", "NLL."},
                          {signal::entropy, {"token", "step"}, "nats", "Entropy", "Entropy."},
                          {signal::gate, {"token", "step"}, "", "Gate", "Gate."}},
                         ShardInfo{rank, world, 1});
        for (std::int64_t s = rank; s < scanned_sequences; s += world) {
            const std::int64_t length = length_of(s);
            const std::string group = s % 10 == 3 || s % 10 == 4 ? "g" + std::to_string(s / 10) : "";
            TokenColumns tokens = testing::sample_tokens(1, 0, length, length);
            const SignalChunk nll = signal_of(10, s, scanned_steps + 1, 5);
            for (std::size_t t = 0; t < tokens.size(); ++t) {
                tokens.steps[t] = draw(2, s, static_cast<std::int64_t>(t)) < 0.1 ? 2 : 3;
                std::memcpy(&tokens.nll[t],
                            nll.data.data() +
                                (t * 4 + static_cast<std::size_t>(tokens.steps[t])) * sizeof(float),
                            sizeof(float));
            }
            writer.begin_sequence("s", testing::sample_text(length), group, s);
            writer.append(std::move(tokens), {{signal::nll, nll},
                                              {signal::entropy, signal_of(20, s, scanned_steps + 1, 4)},
                                              {signal::gate, signal_of(30, s, scanned_steps, 1)}});
            writer.end_sequence();
        }
        writer.end_run(1);
        writer.finish();
    }
}

class ScannedReplays : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = std::make_unique<testing::TemporaryFolder>();
        write(*folder_ / "t.ponder");
    }
    static void TearDownTestSuite() { folder_.reset(); }

    static TraceReader open() { return TraceReader::open(*folder_ / "t.ponder"); }
    static BootstrapOptions with_threads(int threads) {
        BootstrapOptions options;
        options.replicates = 200;
        options.threads = threads;
        return options;
    }

    static std::unique_ptr<testing::TemporaryFolder> folder_;
};
std::unique_ptr<testing::TemporaryFolder> ScannedReplays::folder_;

/// Of a value a row: what the tokens of each cluster add up to.
std::vector<double> by_cluster(const std::vector<double>& values, const TokenLayout& layout) {
    std::vector<double> sums(static_cast<std::size_t>(layout.clusters()));
    std::size_t i = 0;
    for (std::size_t s = 0; s < layout.stretches.size(); ++s) {
        for (std::int64_t t = 0; t < layout.stretches[s]; ++t) {
            sums[static_cast<std::size_t>(layout.cluster_of[s])] += values[i++];
        }
    }
    return sums;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, const std::string& what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_NEAR(a[i], b[i], 1e-9 * (1 + std::abs(b[i]))) << what << " " << i;
    }
}

TEST_F(ScannedReplays, AreThoseOfTheWholeTable) {
    const TraceReader reader = open();
    const RunInfo run = reader.runs().front();
    const ReplayTable table = ReplayTable::load(reader, run);
    const ScoredRows scored(table);
    ReplayScan scan(reader, run, {}, with_threads(1));
    EXPECT_TRUE(scan.suffices());
    scan.find_learned_rate();
    EXPECT_EQ(scan.reader().none().context.learned_rate, table.context.learned_rate);
    std::vector<ReplayScan::Setting> settings;
    for (const char* text : {"full", "learned", "entropy:theta=1.5", "uniform", "oracle"}) {
        const PolicySpec spec = PolicySpec::parse(text);
        settings.push_back(
            {text, [spec](const ReplayTable& part, ReplayResult& result) { replay(part, spec, result); }});
    }
    const ScoredReplays found = scan.replays(settings);
    ASSERT_EQ(found.settings.size(), settings.size());
    EXPECT_EQ(found.halted, table.halted);
    EXPECT_EQ(found.rows.tokens(), scored.layout.tokens());
    EXPECT_EQ(static_cast<std::int64_t>(found.rows.rows()), scored.layout.clusters());
    for (std::size_t i = 0; i < settings.size(); ++i) {
        ReplayResult whole;
        settings[i].replay(table, whole);
        const ReplayResult& total = found.totals[i];
        EXPECT_EQ(total.scored, whole.scored);
        EXPECT_EQ(total.histogram, whole.histogram);
        EXPECT_EQ(total.mean_steps, whole.mean_steps);
        EXPECT_NEAR(total.mean_nll, whole.mean_nll, 1e-12);
        EXPECT_NEAR(total.perplexity, whole.perplexity, 1e-10);
        EXPECT_NEAR(total.mean_flops / whole.mean_flops, 1, 1e-12);
        const ScoredSetting& sums = found.settings[i];
        expect_near(sums.steps, by_cluster(scored.of(whole.steps), scored.layout), sums.policy + " steps");
        expect_near(sums.nll, by_cluster(scored.of(whole.nll), scored.layout), sums.policy + " nll");
        expect_near(sums.flops, by_cluster(scored.of(whole.flops), scored.layout), sums.policy + " flops");
    }
    // No bit depends on the number of threads.
    ReplayScan more(reader, run, {}, with_threads(4));
    more.find_learned_rate();
    const ScoredReplays again = more.replays(settings);
    for (std::size_t i = 0; i < settings.size(); ++i) {
        EXPECT_EQ(again.settings[i].nll, found.settings[i].nll);
        EXPECT_EQ(again.settings[i].flops, found.settings[i].flops);
        EXPECT_EQ(again.totals[i].mean_nll, found.totals[i].mean_nll);
    }
}

TEST_F(ScannedReplays, MatchTheSameRules) {
    const TraceReader reader = open();
    const RunInfo run = reader.runs().front();
    const ReplayTable table = ReplayTable::load(reader, run);
    const ScoredRows scored(table);
    const ReplayScan scan(reader, run, {}, with_threads(2));
    for (const PolicyKind& kind : policy_kinds()) {
        if (table.can(kind)) {
            EXPECT_EQ(threshold_values(kind, scan, 9), threshold_values(kind, table, 9)) << kind.name;
        }
    }
    EXPECT_EQ(matched_rules(scan.reader().none()), matched_rules(table));
    const std::vector<std::string> rules{"learned", "entropy", "oracle", "blind"};
    const std::vector<double> costs{0.8, 1.5};
    const BootstrapOptions options = with_threads(2);
    const MatchedComparison whole = compare_matched(
        rules.size(),
        [&](std::size_t i, const MatchedCosts& at) {
            return replayed_rule(table, scored.layout, rules[i], 9, at);
        },
        0, {costs, {}}, scored.layout, options);
    std::vector<std::int64_t> tokens;
    for (const double count : by_cluster(std::vector<double>(scored.rows.size(), 1), scored.layout)) {
        tokens.push_back(static_cast<std::int64_t>(count));
    }
    const RowLayout rows = RowLayout::of_clusters(tokens);
    const MatchedComparison sums = compare_matched(
        rules.size(),
        [&](std::size_t i, const MatchedCosts& at) { return replayed_rule(scan, rows, rules[i], 9, at); }, 0,
        {costs, {}}, rows, options);
    EXPECT_EQ(sums.resampling.words(), whole.resampling.words());
    for (std::size_t r = 0; r < rules.size(); ++r) {
        for (const auto axis : {&MatchedRow::at_steps, &MatchedRow::at_flops}) {
            for (std::size_t c = 0; c < costs.size(); ++c) {
                const MatchedCell& a = (sums.rows[r].*axis)[c];
                const MatchedCell& b = (whole.rows[r].*axis)[c];
                EXPECT_NEAR(a.cost / b.cost, 1, 1e-12);
                EXPECT_NEAR(a.nll.value, b.nll.value, 1e-9);
                EXPECT_NEAR(a.nll.low, b.nll.low, 1e-9);
                EXPECT_NEAR(a.difference.high, b.difference.high, 1e-9);
            }
        }
    }
    EXPECT_THROW((void)replayed_rule(scan, RowLayout::of_clusters({1, 2}), "entropy", 9), InputError);
}

/// A run that ponders, and one of a plain model over the same tokens that loses half a nat less than its own.
void write_with_plain_model(const std::filesystem::path& trace, std::int64_t flops_a_token) {
    constexpr std::int64_t length = 20;
    FlopsModel flops;
    flops.steps = {100, 80, 80, 80};
    flops.windows = {0};
    flops.decisions = {0, 0, 0};
    flops.read_out = 50;
    TraceWriter writer(trace);
    for (const bool plain : {false, true}) {
        RunInfo run = testing::sample_run(plain ? "plain" : "ponders");
        run.method = plain ? "vanilla" : "ponderlm";
        run.step_unit = "step";
        run.max_steps = plain ? 0 : 3;
        run.flops_model = plain ? "" : flops.to_json();
        writer.begin_run(
            run, plain ? std::vector<SignalInfo>{}
                       : std::vector<SignalInfo>{{signal::nll, {"token", "step"}, "nats", "NLL", "NLL."}});
        for (std::int64_t s = 0; s < 35; ++s) {
            TokenColumns tokens = testing::sample_tokens(1, 0, length, length);
            SignalChunk nll{0, DType::f32, {length, 4}, {}};
            std::vector<float> values;
            for (std::int64_t t = 0; t < length; ++t) {
                for (std::int64_t k = 0; k < 4; ++k) {
                    values.push_back(t + 1 == length ? std::numeric_limits<float>::quiet_NaN()
                                                     : static_cast<float>(4 - k + draw(40, s, t)));
                }
                const auto row = static_cast<std::size_t>(t);
                tokens.steps[row] = plain ? 0 : 3;
                tokens.nll[row] = values.back() - (plain ? 0.5F : 0);
                tokens.flops[row] = plain ? flops_a_token : 390;
            }
            nll.data.resize(values.size() * sizeof(float));
            std::memcpy(nll.data.data(), values.data(), nll.data.size());
            writer.begin_sequence("s", testing::sample_text(length));
            std::vector<std::pair<std::string, SignalChunk>> chunks;
            if (!plain) {
                chunks.emplace_back(signal::nll, nll);
            }
            writer.append(std::move(tokens), std::move(chunks));
            writer.end_sequence();
        }
        writer.end_run(1);
    }
    writer.finish();
}

TEST(PlainModels, ArePointsAtTheirFlops) {
    const testing::TemporaryFolder folder;
    write_with_plain_model(folder / "t.ponder", 250);
    const TraceReader reader = TraceReader::open(folder / "t.ponder");
    const std::vector<RunInfo> runs = reader.runs();
    const std::vector<RunInfo> plain = plain_runs(runs, runs.at(0));
    ASSERT_EQ(plain.size(), 1U);
    EXPECT_EQ(plain.front().name, "plain");
    RunInfo other = runs.at(0);
    other.text_digest += "x";
    EXPECT_TRUE(plain_runs(runs, other).empty());
    const ReplayTable table = ReplayTable::load(reader, runs.at(0));
    const ScoredRows scored(table);
    BootstrapOptions options;
    options.replicates = 100;
    const ReplayScan scan(reader, runs.at(0), {}, options);
    const RowLayout clusters =
        scan.replays(std::vector<ReplayScan::Setting>{
                         {"", [](const ReplayTable& part,
                                 ReplayResult& result) { replay(part, PolicySpec::parse("full"), result); }}})
            .rows;
    const MatchedRule by_token = plain_rule(reader, plain.front(), scan.reader(), &scored, scored.layout);
    const MatchedRule by_cluster = plain_rule(reader, plain.front(), scan.reader(), nullptr, clusters);
    for (const auto& [rule, rows] :
         {std::pair{by_token, RowLayout(scored.layout)}, std::pair{by_cluster, clusters}}) {
        ASSERT_EQ(rule.settings.size(), 1U);
        EXPECT_EQ(rows.mean(rule.settings[0].flops), 250);
        const bool tokens = !rows.by_cluster();
        const MatchedComparison found = compare_matched(
            2,
            [&, &one = rule, &layout = rows](std::size_t i, const MatchedCosts& at) {
                return i == 1   ? one
                       : tokens ? replayed_rule(table, scored.layout, blind_rule, 9, at)
                                : replayed_rule(scan, layout, blind_rule, 9, at);
            },
            0, {{1.5}, {250, 9000}}, rows, options);
        ASSERT_EQ(found.rows[1].at_flops.size(), 2U); // 250, and what 1.5 steps take: 270; nothing takes 9000
        EXPECT_EQ(found.rows[1].at_flops[0].cost, 250);
        // Blind at 250 of 150, 230, 310, 390 FLOPs: a quarter on from one step to the next.
        EXPECT_NEAR(found.rows[1].at_flops[0].difference.value, -0.5 + 1 - 2.75, 1e-5);
        EXPECT_FALSE(found.rows[1].at_flops[0].better); // it does not think
        EXPECT_TRUE(std::isnan(found.rows[1].at_flops[1].nll.value));
        EXPECT_TRUE(std::isnan(found.rows[1].at_steps[0].nll.value));
    }
    // One that scored other tokens is none.
    EXPECT_TRUE(plain_rule(reader, plain.front(), scan.reader(), nullptr, RowLayout::of_clusters({3}))
                    .settings.empty());
}

TEST_F(ScannedReplays, ReadNoMoreThanIsAskedFor) {
    const TraceReader reader = open();
    const RunInfo run = reader.runs().front();
    const ReplayReader only(reader, run, {PolicySignal::entropy});
    EXPECT_TRUE(only.none().columns.has(PolicySignal::nll)); // what every replay reads
    EXPECT_TRUE(only.none().columns.has(PolicySignal::entropy));
    EXPECT_FALSE(only.none().columns.has(PolicySignal::continue_value));
    EXPECT_THROW(only.none().require(PolicySpec::parse("learned")), InputError);
    const ReplayTable part = only.read(reader, 3, 5);
    EXPECT_EQ(part.sequences, (std::vector<std::int64_t>{length_of(3), length_of(4)}));
    EXPECT_EQ(part.clusters[0], part.clusters[1]);
    EXPECT_EQ(part.places.front().sequence, 3U);
    EXPECT_EQ(part.windows.size(), 2U);
}

} // namespace
} // namespace ponderscope
