// SPDX-License-Identifier: GPL-3.0-or-later
// What the writer of traces takes of a processor, as a run on a GPU asks it to: the cores that half a million
// tokens a second keep busy, of scalars alone and with signals by step (K = 3).
//   trace_bench [--tokens N] [--rounds N]
#include "core/trace/writer.h"
#include "tests/bench/timing.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"

#include <cstdio>
#include <ctime>
#include <filesystem>

namespace {

using namespace ponderscope;

constexpr std::int64_t piece = 4098; ///< tokens of an append: whole rounds of the sample's six words

/// A whole trace, from the first call to the finished file: seconds of all threads.
double processor_seconds(const std::filesystem::path& path, std::int64_t tokens, bool with_signals) {
    std::filesystem::remove(path);
    const TokenColumns columns = testing::sample_tokens(1, 0, piece, tokens);
    auto chunks = testing::sample_chunks(1, 0, piece);
    chunks.resize(with_signals ? chunks.size() : 0);
    const std::string text = testing::sample_text(tokens);
    const std::uint64_t bytes = columns.end.back();
    const std::clock_t clock = std::clock();
    TraceWriter writer(path);
    writer.begin_run(testing::sample_run("bench"),
                     with_signals ? testing::sample_signals() : std::vector<SignalInfo>());
    writer.begin_sequence("bench", text);
    for (std::int64_t first = 0; first < tokens; first += piece) {
        TokenColumns now = columns;
        now.first = first;
        for (std::size_t i = 0; i < now.size(); ++i) {
            now.begin[i] += bytes * static_cast<std::uint64_t>(first / piece);
            now.end[i] += bytes * static_cast<std::uint64_t>(first / piece);
        }
        auto signals = chunks;
        for (auto& [name, chunk] : signals) {
            chunk.first = first;
        }
        writer.append(std::move(now), std::move(signals));
    }
    writer.end_sequence();
    writer.end_run(1);
    writer.finish();
    return static_cast<double>(std::clock() - clock) / CLOCKS_PER_SEC;
}

int run(int argc, char** argv) {
    const auto given = bench::options_of(argc, argv, {{"--tokens", "1048576"}, {"--rounds", "3"}});
    if (!given) {
        return 2;
    }
    const std::int64_t tokens = std::stoll(given->at("--tokens")) / piece * piece;
    const testing::TemporaryFolder folder;
    for (const bool with_signals : {false, true}) {
        std::vector<double> seconds;
        for (int round = 0; round <= std::stoi(given->at("--rounds")); ++round) {
            seconds.push_back(processor_seconds(folder / "bench.ponder", tokens, with_signals));
        }
        std::printf("writer, %s: 0.5 M tokens/s keep %.2f cores busy; load %.1f\n",
                    with_signals ? "signals by step" : "scalars",
                    0.5e6 * bench::median({seconds.begin() + 1, seconds.end()}) / static_cast<double>(tokens),
                    bench::load());
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    return ponderscope::bench::run_program(run, argc, argv);
}
