// SPDX-License-Identifier: GPL-3.0-or-later
// What is recorded, by one process and by several: scalars alone, compressed, a limit.
#include "core/trace/reader.h"
#include "tests/core/cli/shards_stage.h"
#include "tests/core/trace/sample.h"

#include <cmath>

namespace ponderscope {
namespace {

using namespace testing;

TEST_F(Shards, ScalarsKeepWhatStatisticsNeed) {
    const std::string basic = folder / "basic.ponder";
    how.insert(how.end(), {"--record", "basic"});
    succeed(record_to(basic));
    how.back() = "scalars";
    const std::string scalars = folder / "scalars.ponder";
    succeed(record_to(scalars));
    succeed({"check", scalars});
    EXPECT_EQ(sql_value(scalars, "SELECT count(*) FROM token_row"), "0");
    const TraceReader one = TraceReader::open(basic);
    const TraceReader other = TraceReader::open(scalars);
    EXPECT_TRUE(other.signal_infos(1).empty());
    for (const SequenceInfo& sequence : one.sequences(1)) {
        const TokenColumns a = one.tokens(1, sequence.number);
        const TokenColumns b = other.tokens(1, sequence.number);
        EXPECT_EQ(a.id, b.id);
        EXPECT_EQ(a.begin, b.begin);
        EXPECT_EQ(a.end, b.end);
        EXPECT_EQ(a.rank, b.rank);
        EXPECT_EQ(a.steps, b.steps);
        EXPECT_EQ(a.flops, b.flops);
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
            EXPECT_TRUE(a.nll[i] == b.nll[i] || (std::isnan(a.nll[i]) && std::isnan(b.nll[i])));
            EXPECT_EQ(a.entropy[i], b.entropy[i]);
            EXPECT_TRUE(std::isnan(b.max_probability[i]));
        }
        const TokenColumns some = other.tokens(1, sequence.number, 3, 7);
        EXPECT_EQ(some.first, 3);
        EXPECT_EQ(some.id, std::vector<std::int32_t>(a.id.begin() + 3, a.id.begin() + 7));
    }
    succeed({"compare", basic, scalars, "--json"});
    // In shards, resumed and joined like any other run.
    const std::string trace = folder / "w.ponder";
    record_in_world(trace, 3);
    const std::string joined = folder / "joined.ponder";
    succeed({"merge", "--join", folder / "w.r*", "-o", joined});
    expect_equal(exported(scalars), exported(joined), "scalars");
    succeed({"check", joined});
    // A damaged frame is a sentence, not values.
    sql(scalars, "UPDATE chunk SET data = substr(data, 1, length(data) - 5) WHERE dtype LIKE '%zstd'");
    EXPECT_EQ(run_ponderscope({"check", scalars}).code, 1);
    EXPECT_EQ(run_ponderscope({"stats", scalars}).code, 2);
}

TEST_F(Shards, CompressedValuesAreTheSame) {
    const std::string plain = folder / "plain.ponder";
    ASSERT_EQ(run_ponderscope(record_to(plain)).code, 0);
    how.emplace_back("--compress");
    const std::string compressed = folder / "compressed.ponder";
    succeed(record_to(compressed));
    EXPECT_GT(std::stoll(sql_value(compressed, "SELECT count(*) FROM chunk WHERE dtype LIKE '%+zstd'")), 0);
    EXPECT_LT(std::stoll(sql_value(compressed, "SELECT sum(length(data)) FROM chunk")),
              std::stoll(sql_value(plain, "SELECT sum(length(data)) FROM chunk")));
    expect_equal(exported(plain), exported(compressed), "compressed");
    succeed({"check", compressed});
    how.emplace_back("--no-candidates");
    const std::string fewer = folder / "fewer.ponder";
    succeed(record_to(fewer));
    for (const SignalInfo& signal : TraceReader::open(fewer).signal_infos(1)) {
        EXPECT_EQ(signal.name.find("candidate"), std::string::npos);
    }
    succeed({"check", fewer});
}

TEST_F(Shards, ALimitIsOfTheTextsAlone) {
    how.insert(how.end(), {"--limit-tokens", "300"});
    const std::string limited = folder / "limited.ponder";
    succeed(record_to(limited));
    const TraceReader reader = TraceReader::open(limited);
    const std::vector<SequenceInfo> sequences = reader.sequences(1);
    EXPECT_GE(reader.runs().front().tokens, 300);
    EXPECT_LT(reader.runs().front().tokens - sequences.back().tokens, 300);
    // The digest is that of the texts that were taken.
    std::string lines = read_file(corpus);
    std::size_t end = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        end = lines.find('\n', end) + 1;
    }
    write_file_atomically(corpus, lines.substr(0, end));
    how.resize(how.size() - 2);
    const std::string same = folder / "same.ponder";
    succeed(record_to(same));
    EXPECT_EQ(TraceReader::open(same).runs().front().text_digest, reader.runs().front().text_digest);
}

} // namespace
} // namespace ponderscope
