// SPDX-License-Identifier: GPL-3.0-or-later
// What the writer of traces takes of a processor, as a run on a GPU asks it to: the cores that half a million
// tokens a second keep busy, of scalars alone (--record scalars) and of every signal of K = 3 (--record
// steps).
//
//   trace_bench [--tokens N] [--rounds N]
#include "core/base/splitmix.h"
#include "core/trace/reader.h"
#include "core/trace/writer.h"
#include "tests/bench/program.h"
#include "tests/bench/timing.h"
#include "tests/support/test_data.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using namespace ponderscope;

constexpr std::int64_t steps = 4; // K = 3
constexpr std::int64_t candidates = 10;

RunInfo run_info(const char* name) {
    RunInfo run;
    run.name = name;
    run.method = "ponderlm";
    run.max_steps = steps - 1;
    run.text_digest = "bench";
    return run;
}

/// What `--record steps` keeps.
std::vector<SignalInfo> step_signals() {
    std::vector<SignalInfo> signals;
    for (const char* name : {signal::nll, signal::entropy, signal::max_probability, signal::margin,
                             signal::rank, signal::argmax, signal::kl_previous_current,
                             signal::kl_current_previous, signal::cosine, signal::latent_difference}) {
        const std::string_view shown = name;
        const bool whole = shown == signal::rank || shown == signal::argmax;
        signals.push_back({name, {"token", "step"}, "", name, "", whole ? DType::i32 : DType::f32});
    }
    const std::vector<std::string> axes{"token", "step", "candidate"};
    signals.push_back({signal::candidate_ids, axes, "", "Candidates", "", DType::i32});
    signals.push_back({signal::candidate_probabilities, axes, "", "Candidates", "", DType::f16});
    return signals;
}

TokenColumns tokens_from(std::int64_t first, std::int64_t count) {
    TokenColumns tokens;
    tokens.first = first;
    for (std::int64_t t = first; t < first + count; ++t) {
        const std::uint64_t bits = splitmix64(7, static_cast<std::uint64_t>(t));
        const auto u = static_cast<float>(unit_interval(bits));
        tokens.id.push_back(static_cast<std::int32_t>(bits % 50304));
        tokens.begin.push_back(static_cast<std::uint64_t>(t) * 4);
        tokens.end.push_back(static_cast<std::uint64_t>(t) * 4 + 4);
        tokens.nll.push_back(6 * u * u);
        tokens.entropy.push_back(4 * u);
        tokens.max_probability.push_back(1 - u);
        tokens.rank.push_back(1 + static_cast<std::int32_t>(bits % 997));
        tokens.steps.push_back(static_cast<std::int32_t>(bits % steps));
        tokens.flops.push_back(140'000'000 + static_cast<std::int64_t>(bits % 100'000));
    }
    return tokens;
}

std::vector<std::pair<std::string, SignalChunk>> chunks_from(std::int64_t first, std::int64_t count) {
    std::vector<std::pair<std::string, SignalChunk>> chunks;
    for (const SignalInfo& info : step_signals()) {
        SignalChunk chunk;
        chunk.first = first;
        chunk.shape = {count, steps};
        if (info.axes.size() == 3) {
            chunk.shape.push_back(candidates);
        }
        chunk.dtype = info.dtype;
        std::size_t bytes = size_of(chunk.dtype);
        for (const std::int64_t length : chunk.shape) {
            bytes *= static_cast<std::size_t>(length);
        }
        chunk.data.resize(bytes);
        for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
            const std::uint64_t bits = splitmix64(3, i + static_cast<std::size_t>(first));
            std::memcpy(chunk.data.data() + i, &bits, 8);
        }
        chunks.emplace_back(info.name, std::move(chunk));
    }
    return chunks;
}

std::string text_of(std::int64_t tokens) {
    std::string text;
    for (std::int64_t t = 0; t < tokens; ++t) {
        text += "abc ";
    }
    return text;
}

/// A whole trace, from the first call to the finished file.
void write_trace(const fs::path& path, std::int64_t tokens, bool with_steps) {
    constexpr std::int64_t piece = 4096; // eight windows of 512
    fs::remove(path);
    const auto chunks =
        with_steps ? chunks_from(0, piece) : std::vector<std::pair<std::string, SignalChunk>>();
    const TokenColumns columns = tokens_from(0, piece);
    TraceWriter writer(path);
    writer.begin_run(run_info("bench"), with_steps ? step_signals() : std::vector<SignalInfo>());
    writer.begin_sequence("bench", text_of(tokens));
    for (std::int64_t first = 0; first < tokens; first += piece) {
        TokenColumns now = columns;
        now.first = first;
        for (std::size_t i = 0; i < static_cast<std::size_t>(piece); ++i) {
            now.begin[i] += static_cast<std::uint64_t>(first) * 4;
            now.end[i] += static_cast<std::uint64_t>(first) * 4;
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
}

int run(int argc, char** argv) {
    const auto given = bench::options_of(argc, argv, {{"--tokens", "1048576"}, {"--rounds", "3"}});
    if (!given) {
        return 2;
    }
    const std::int64_t tokens = std::stoll(given->at("--tokens")) / 4096 * 4096;
    const testing::TemporaryFolder folder;
    const fs::path scalars = folder.path() / "scalars.ponder", every = folder.path() / "steps.ponder";
    const std::vector<std::function<void()>> actions{[&] { write_trace(scalars, tokens, false); },
                                                     [&] { write_trace(every, tokens, true); }};
    const auto all = bench::interleaved(actions, std::stoi(given->at("--rounds")));
    const auto n = static_cast<double>(tokens);
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::printf(
            "writer, %s: %.2f M tokens/s; 0.5 M tokens/s keep %.2f cores busy; %.0f bytes a token without "
            "the text; %s\n",
            i == 0 ? "scalars" : "every signal", n / all[i].seconds / 1e6, 0.5e6 * all[i].processor / n,
            static_cast<double>(fs::file_size(i == 0 ? scalars : every)) / n - 4, all[i].machine.c_str());
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    return ponderscope::bench::run_program(run, argc, argv);
}
