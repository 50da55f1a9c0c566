// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/head_stats.h"

#include "tests/core/kernels/cuda/head_cases.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace ponderscope::kernels {

namespace {

using namespace testing;

/// What the kernels say about rows of logits.
struct Statistics {
    std::vector<float> log_sum_exp, maximum, log_sum, nll, entropy, list_values;
    std::vector<std::int64_t> rank, list_ids;
};

Row joined(const std::vector<Row>& rows) {
    Row all;
    for (const Row& row : rows) {
        all.insert(all.end(), row.begin(), row.end());
    }
    return all;
}

/// Divergences from other rows.
struct From {
    const std::vector<Row>* rows = nullptr; ///< nullptr: not asked for
    float* forward = nullptr;
    float* backward = nullptr;
};

/// The tiles of so many words one after the other, nothing behind each; targets' logits `off` by roundings.
void run_tiles(const std::vector<Row>& rows, const HeadRows& wanted, std::int64_t width, int off,
               const From& from) {
    const std::int64_t vocabulary = wanted.vocabulary;
    HeadSoFar garbage;
    garbage.sums.maximum = 1e30F;
    garbage.sums.sum = nan;
    garbage.larger = 99;
    garbage.divergence.number(1) = garbage.divergence.number(5) = nan;
    std::vector<HeadSoFar> so_far(rows.size(), garbage);
    std::vector<float> pivots;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::int64_t target = wanted.targets[i];
        pivots.push_back(target < 0 ? -infinity : rows[i][static_cast<std::size_t>(target)]);
        for (int step = 0; step < std::abs(off); ++step) {
            pivots.back() = std::nextafter(pivots.back(), off < 0 ? -infinity : infinity);
        }
    }
    HeadTile t;
    t.of = wanted;
    t.pivots = pivots.data();
    t.so_far = so_far.data();
    for (t.word = 0; t.word < vocabulary; t.word += width) {
        t.words = std::min(width, vocabulary - t.word);
        const auto part_of = [&](const std::vector<Row>& all) {
            std::vector<Row> parts;
            for (const Row& row : all) {
                parts.emplace_back(row.begin() + t.word, row.begin() + t.word + t.words);
            }
            return joined(parts);
        };
        const auto logits = part_of(rows);
        const auto before = from.rows != nullptr ? part_of(*from.rows) : Row();
        t.of.logits = logits.data();
        t.before = from.rows != nullptr ? before.data() : nullptr;
        t.forward = from.forward;
        t.backward = from.backward;
        EXPECT_STREQ(head_tile_cuda(t, nullptr), nullptr);
    }
}

/// `tile`: in tiles of so many words; 0: whole rows.
Statistics run(const std::vector<Row>& rows, const std::vector<std::int64_t>& targets, std::int64_t length,
               std::int64_t tile = 0, int off = 0, const From& from = {}) {
    const auto logits = joined(rows);
    const auto n = rows.size();
    Statistics s;
    for (auto* floats : {&s.log_sum_exp, &s.maximum, &s.log_sum, &s.nll, &s.entropy}) {
        floats->assign(n, -7);
    }
    s.rank.assign(n, -7);
    s.list_values.assign(n * static_cast<std::size_t>(length), -7);
    s.list_ids.assign(n * static_cast<std::size_t>(length), -7);
    HeadRows a;
    a.logits = logits.data();
    a.rows = static_cast<std::int64_t>(n);
    a.vocabulary = static_cast<std::int64_t>(rows.front().size());
    a.targets = targets.data();
    a.log_sum_exp = s.log_sum_exp.data();
    a.maximum = s.maximum.data();
    a.log_sum = s.log_sum.data();
    a.nll = s.nll.data();
    a.rank = s.rank.data();
    a.entropy = s.entropy.data();
    a.list_length = length;
    a.list_values = s.list_values.data();
    a.list_ids = s.list_ids.data();
    if (tile > 0) {
        run_tiles(rows, a, tile, off, from);
    } else {
        EXPECT_STREQ(head_rows_cuda(a, nullptr), nullptr);
    }
    return s;
}

/// All ids, the larger logit first, of equals the lower id; NaN last.
std::vector<std::int64_t> sorted_ids(const Row& row) {
    std::vector<std::int64_t> ids(row.size());
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    std::stable_sort(ids.begin(), ids.end(), [&](std::int64_t a, std::int64_t b) {
        const float x = row[static_cast<std::size_t>(a)];
        const float y = row[static_cast<std::size_t>(b)];
        return std::isnan(y) ? !std::isnan(x) : x > y;
    });
    return ids;
}

void expect_statistics(const std::vector<Row>& rows, const std::vector<std::int64_t>& targets,
                       std::int64_t length, std::int64_t tile = 0) {
    const auto got = run(rows, targets, length, tile);
    const double end = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row& row = rows[i];
        const auto log_p = log_softmax(row);
        double entropy = 0;
        double sum_of_all = 0;
        double largest = -end;
        bool any_nan = false;
        for (std::size_t v = 0; v < row.size(); ++v) {
            entropy -= log_p[v] == -end ? 0 : std::exp(log_p[v]) * log_p[v];
            any_nan = any_nan || std::isnan(row[v]);
            largest = std::max(largest, static_cast<double>(row[v]));
        }
        for (const float x : row) {
            sum_of_all += std::exp(static_cast<double>(x) - largest);
        }
        const double log_sum_exp = any_nan                  ? static_cast<double>(nan)
                                   : std::isfinite(largest) ? largest + std::log(sum_of_all)
                                                            : largest;
        expect_near(static_cast<double>(got.log_sum_exp[i]), log_sum_exp, 1e-6, "log_sum_exp");
        expect_near(static_cast<double>(got.entropy[i]), entropy, 3e-6, "entropy");
        // Both parts make log-probabilities.
        for (std::size_t v = 0; v < row.size(); v += 1 + row.size() / 7) {
            const float difference = row[v] - got.maximum[i] - got.log_sum[i];
            expect_near(static_cast<double>(difference), log_p[v], 1e-6, "log p");
        }
        const auto target = targets[i];
        if (target < 0) {
            EXPECT_TRUE(std::isnan(got.nll[i]));
            EXPECT_EQ(got.rank[i], 0);
        } else {
            expect_near(static_cast<double>(got.nll[i]), -log_p[static_cast<std::size_t>(target)], 1e-6,
                        "nll");
            const float pivot = row[static_cast<std::size_t>(target)];
            EXPECT_EQ(got.rank[i],
                      1 + std::count_if(row.begin(), row.end(), [&](float x) { return x > pivot; }));
        }
        const auto ids = sorted_ids(row);
        for (std::int64_t place = 0; place < length; ++place) {
            const auto at = i * static_cast<std::size_t>(length) + static_cast<std::size_t>(place);
            ASSERT_EQ(got.list_ids[at], ids[static_cast<std::size_t>(place)]) << "place " << place;
            const float value = row[static_cast<std::size_t>(got.list_ids[at])];
            EXPECT_TRUE(got.list_values[at] == value ||
                        (std::isnan(got.list_values[at]) && std::isnan(value)));
        }
    }
}

struct Divergences {
    double forward = 0, backward = 0;
};

Divergences run_divergence(const Row& p, const Row& q) {
    const auto statistics = run({p, q}, {-1, -1}, 0);
    float forward = -7;
    float backward = -7;
    DivergenceRows a;
    a.p = p.data();
    a.q = q.data();
    a.p_maximum = &statistics.maximum[0];
    a.q_maximum = &statistics.maximum[1];
    a.p_log_sum = &statistics.log_sum[0];
    a.q_log_sum = &statistics.log_sum[1];
    a.rows = 1;
    a.vocabulary = static_cast<std::int64_t>(p.size());
    a.forward = &forward;
    a.backward = &backward;
    EXPECT_STREQ(divergence_rows_cuda(a, nullptr), nullptr);
    return {static_cast<double>(forward), static_cast<double>(backward)};
}

} // namespace

TEST(HeadRowsKernel, EveryVocabularyUpTo3000) {
    Random random(21);
    const std::int64_t lengths[] = {0, 1, 2, 10, 50, 256};
    for (std::int64_t vocabulary = 1; vocabulary <= 3000; vocabulary += shape_step) {
        SCOPED_TRACE("vocabulary " + std::to_string(vocabulary));
        const int kind = random.one_of(2) ? 0 : static_cast<int>(random.below(kinds));
        const std::vector<Row> rows = {make_row(random, static_cast<std::size_t>(vocabulary), kind)};
        const std::vector<std::int64_t> targets = {random.one_of(5) ? -1 : random.below(vocabulary)};
        host_cuda::set_order(orders[static_cast<std::size_t>(vocabulary % 3)], random.seed());
        // A place of a list of equals costs a pass: long ones now and then.
        const auto length = std::min(vocabulary, lengths[random.below(random.one_of(20) ? 6 : 4)]);
        expect_statistics(rows, targets, length);
        ASSERT_FALSE(HasFailure());
    }
    RecordProperty("shapes", 3000);
}

TEST(HeadRowsKernel, EveryKindOfRowBesideEveryTarget) {
    Random random(22);
    host_cuda::set_order(host_cuda::Order::shuffled, 22);
    for (const std::int64_t vocabulary : {1, 2, 31, 255, 256, 257, 1500, 2100}) {
        for (int kind = 0; kind < kinds; ++kind) {
            SCOPED_TRACE("kind " + std::to_string(kind) + " of " + std::to_string(vocabulary));
            const auto row = make_row(random, static_cast<std::size_t>(vocabulary), kind);
            expect_statistics({row, row, row, row}, {-1, 0, vocabulary - 1, random.below(vocabulary)},
                              std::min<std::int64_t>(vocabulary, 12));
        }
    }
}

TEST(HeadTileKernel, EveryVocabularyUpTo3000) {
    Random random(31);
    const std::int64_t lengths[] = {0, 1, 2, 10, 31, 32};
    int shapes = 0;
    for (std::int64_t vocabulary = 1; vocabulary <= 3000; vocabulary += shape_step) {
        const std::int64_t tile = random.one_of(4) ? vocabulary : 1 + random.below(2 * vocabulary);
        SCOPED_TRACE("vocabulary " + std::to_string(vocabulary) + " in tiles of " + std::to_string(tile));
        const int kind = random.one_of(2) ? 0 : static_cast<int>(random.below(kinds));
        const std::vector<Row> rows = {make_row(random, static_cast<std::size_t>(vocabulary), kind)};
        const std::vector<std::int64_t> targets = {random.one_of(5) ? -1 : random.below(vocabulary)};
        host_cuda::set_order(orders[static_cast<std::size_t>(shapes++ % 3)], random.seed());
        expect_statistics(rows, targets, std::min(vocabulary, lengths[random.below(6)]), tile);
        ASSERT_FALSE(HasFailure());
    }
    RecordProperty("shapes", shapes);
}

TEST(HeadTileKernel, EveryKindOfRowBesideOthers) {
    Random random(32);
    host_cuda::set_order(host_cuda::Order::shuffled, 32);
    for (const std::int64_t vocabulary : {1, 2, 31, 257, 1100}) {
        for (const std::int64_t tile : {1, 32, 33, 500}) {
            if (vocabulary > 100 * tile) {
                continue;
            }
            SCOPED_TRACE(std::to_string(vocabulary) + " words in tiles of " + std::to_string(tile));
            std::vector<Row> rows;
            std::vector<std::int64_t> targets;
            for (int kind = 0; kind < kinds; ++kind) { // more than a block's warps
                rows.push_back(make_row(random, static_cast<std::size_t>(vocabulary), kind));
                targets.push_back(random.below(vocabulary + 1) - 1);
            }
            expect_statistics(rows, targets, std::min<std::int64_t>(vocabulary, 12), tile);
        }
    }
}

TEST(HeadTileKernel, ATargetWhoseLogitIsRoundedOtherwiseIsNoWordBeforeItself) {
    Random random(33);
    const std::vector<Row> rows(9, make_row(random, 700, 0));
    const std::vector<std::int64_t> targets{0, 99, 100, 199, 350, 500, 600, 601, 699};
    const auto exact = run(rows, targets, 0);
    for (const int off : {-4, -1, 1, 4}) {
        const auto got = run(rows, targets, 0, 100, off);
        EXPECT_EQ(got.rank, exact.rank) << off;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            EXPECT_NEAR(got.nll[i], exact.nll[i], 1e-5) << off;
        }
    }
}

class HeadKernels : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(HeadRowsAndTiles, HeadKernels, ::testing::Values(0, 300));

TEST_P(HeadKernels, AnyOrderOfLanesGivesTheSameBits) {
    Random random(23);
    for (int round = 0; round < 36; ++round) {
        const std::vector<Row> rows = {
            make_row(random, static_cast<std::size_t>(1 + random.below(2500)), round % kinds)};
        const auto vocabulary = static_cast<std::int64_t>(rows[0].size());
        const auto length = std::min<std::int64_t>(vocabulary, 20);
        const auto bits = [&] {
            const auto s = run(rows, {vocabulary / 2}, length, GetParam());
            std::vector<std::uint32_t> all;
            for (const auto* floats :
                 {&s.log_sum_exp, &s.maximum, &s.log_sum, &s.nll, &s.entropy, &s.list_values}) {
                for (const float x : *floats) {
                    // NaN have signs that nobody chose.
                    all.push_back(std::isnan(x) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(x));
                }
            }
            for (const auto* numbers : {&s.rank, &s.list_ids}) {
                all.insert(all.end(), numbers->begin(), numbers->end());
            }
            return all;
        };
        host_cuda::set_order(host_cuda::Order::forward);
        const auto expected = bits();
        for (const auto order : {host_cuda::Order::backward, host_cuda::Order::shuffled}) {
            host_cuda::set_order(order, random.seed());
            EXPECT_EQ(bits(), expected) << "kind " << round % kinds;
        }
    }
}

TEST(HeadRowsKernel, ACounterOfWordsReachesTheirEnd) {
    if (std::getenv("PONDERSCOPE_LONG_KERNEL_TESTS") == nullptr) {
        GTEST_SKIP() << "half a minute; to run it: PONDERSCOPE_LONG_KERNEL_TESTS=1";
    }
    const std::int64_t vocabulary = std::numeric_limits<std::int32_t>::max();
    const auto size = static_cast<std::size_t>(vocabulary) * sizeof(float);
    void* memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED) << "8 GB of addresses";
    auto* logits = static_cast<float*>(memory);
    logits[vocabulary - 1] = 2; // the others are 0
    logits[vocabulary - 2] = 2;
    const std::int64_t target = vocabulary - 3;
    float log_sum_exp = 0;
    float nll = 0;
    std::int64_t rank = 0;
    std::int64_t ids[2] = {};
    float values[2] = {};
    HeadRows a;
    a.logits = logits;
    a.rows = 1;
    a.vocabulary = vocabulary;
    a.targets = &target;
    a.log_sum_exp = &log_sum_exp;
    a.nll = &nll;
    a.rank = &rank;
    a.list_length = 2;
    a.list_ids = ids;
    a.list_values = values;
    ASSERT_STREQ(head_rows_cuda(a, nullptr), nullptr);
    EXPECT_NEAR(log_sum_exp, std::log(0x1p31), 1e-4);
    EXPECT_NEAR(nll, std::log(0x1p31), 1e-4);
    EXPECT_EQ(rank, 3);
    EXPECT_EQ(ids[0], vocabulary - 2);
    EXPECT_EQ(ids[1], vocabulary - 1);
    munmap(memory, size);
}

TEST(HeadRowsKernel, RefusesWhatDoesNotFit) {
    HeadRows a;
    EXPECT_EQ(head_rows_cuda(a, nullptr), nullptr);
    a.rows = 1;
    a.vocabulary = 300;
    a.list_length = 257;
    EXPECT_STREQ(head_rows_cuda(a, nullptr), "the list of candidates is too long");
    a.vocabulary = 10;
    a.list_length = 11;
    EXPECT_STREQ(head_rows_cuda(a, nullptr), "the list of candidates is too long");
    a.vocabulary = std::int64_t{1} << 31;
    EXPECT_STREQ(head_rows_cuda(a, nullptr), "more rows or words than the kernel takes");
    a.vocabulary = 10;
    a.rows = std::int64_t{1} << 31;
    EXPECT_STREQ(head_rows_cuda(a, nullptr), "more rows or words than the kernel takes");
    HeadTile tile;
    EXPECT_EQ(head_tile_cuda(tile, nullptr), nullptr);
    tile.words = 40;
    tile.of = {.rows = 1, .vocabulary = 40, .list_length = 33};
    EXPECT_STREQ(head_tile_cuda(tile, nullptr), "the list of candidates is too long");
    tile.of = {.rows = 1, .vocabulary = 3, .list_length = 4};
    EXPECT_STREQ(head_tile_cuda(tile, nullptr), "the list of candidates is too long");
    tile.of = {.rows = 1, .vocabulary = std::int64_t{1} << 31};
    EXPECT_STREQ(head_tile_cuda(tile, nullptr), "more rows or words than the kernel takes");
    DivergenceRows pair;
    EXPECT_EQ(divergence_rows_cuda(pair, nullptr), nullptr);
    pair.rows = std::int64_t{1} << 31;
    EXPECT_STREQ(divergence_rows_cuda(pair, nullptr), "more rows or words than the kernel takes");
}

TEST(DivergenceKernel, EveryKindOfRowAgainstEveryOther) {
    Random random(24);
    int shapes = 0;
    for (std::size_t vocabulary : std::initializer_list<std::size_t>{1, 2, 40, 256, 300, 2999}) {
        for (int p = 0; p < kinds; ++p) {
            for (int q = 0; q < kinds; ++q) {
                SCOPED_TRACE(std::to_string(p) + " against " + std::to_string(q) + ", vocabulary " +
                             std::to_string(vocabulary));
                host_cuda::set_order(orders[static_cast<std::size_t>(shapes++ % 3)], random.seed());
                const auto x = make_row(random, vocabulary, p);
                const auto y = make_row(random, vocabulary, q);
                const auto got = run_divergence(x, y);
                expect_near(got.forward, divergence(x, y), 1e-5, "forward");
                expect_near(got.backward, divergence(y, x), 1e-5, "backward");
            }
        }
    }
    RecordProperty("shapes", shapes);
}

TEST(DivergenceKernel, AWordThatIsImpossibleInOneAlone) {
    Random random(25);
    for (int round = 0; round < 20; ++round) {
        auto p = make_row(random, 500, 0);
        auto q = make_row(random, 500, 0);
        const auto word = static_cast<std::size_t>(random.below(500));
        p[word] = round % 2 == 0 ? -30.0F : -1000.0F; // e^-1000 is 0 in fp32, but not impossible
        q[word] = -infinity;
        const auto got = run_divergence(p, q);
        EXPECT_EQ(got.forward, std::numeric_limits<double>::infinity());
        expect_near(got.backward, divergence(q, p), 1e-5, "backward");
        // A finite logit, however low, is a finite divergence.
        q[word] = -1e35F;
        p[word] = 0;
        const auto low = run_divergence(p, q);
        EXPECT_TRUE(std::isfinite(low.forward));
        expect_near(low.forward, divergence(p, q), 1e-5, "forward");
    }
}

TEST(HeadTileKernel, DivergencesOfEveryKindOfRowAgainstEveryOther) {
    Random random(27);
    int shapes = 0;
    for (const std::int64_t vocabulary : {1, 2, 33, 300, 1999}) {
        std::vector<Row> p, q;
        for (int kind = 0; kind < kinds * kinds; ++kind) {
            p.push_back(make_row(random, static_cast<std::size_t>(vocabulary), kind / kinds));
            q.push_back(kind % 13 == 5
                            ? p.back()
                            : make_row(random, static_cast<std::size_t>(vocabulary), kind % kinds));
        }
        const std::vector<std::int64_t> targets(p.size(), vocabulary / 2);
        for (const std::int64_t tile : {vocabulary, std::int64_t{1} + vocabulary / 3}) {
            host_cuda::set_order(orders[static_cast<std::size_t>(shapes++ % 3)], random.seed());
            Row forward(p.size(), -7), backward(p.size(), -7);
            const auto plain = run(p, targets, 0, tile);
            const auto with = run(p, targets, 0, tile, 0, {&q, forward.data(), backward.data()});
            for (std::size_t i = 0; i < p.size(); ++i) {
                SCOPED_TRACE(std::to_string(i / kinds) + " against " + std::to_string(i % kinds) +
                             ", vocabulary " + std::to_string(vocabulary) + " in tiles of " +
                             std::to_string(tile));
                expect_near(static_cast<double>(forward[i]), divergence(p[i], q[i]), 1e-5, "forward");
                expect_near(static_cast<double>(backward[i]), divergence(q[i], p[i]), 1e-5, "backward");
                EXPECT_EQ(std::bit_cast<std::uint32_t>(with.entropy[i]) & 0x7fffffffU,
                          std::bit_cast<std::uint32_t>(plain.entropy[i]) & 0x7fffffffU);
                EXPECT_EQ(with.rank[i], plain.rank[i]);
            }
            ASSERT_FALSE(HasFailure());
        }
    }
    RecordProperty("shapes", shapes);
}

} // namespace ponderscope::kernels
