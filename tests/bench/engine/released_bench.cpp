// SPDX-License-Identifier: GPL-3.0-or-later
// How fast a released recurrent-depth model runs: tokens a second scored and decoded, with the cache of every
// step and without. The shape is Ouro-1.4B's; its weights are drawn, in bf16, and written to a folder that is
// gone afterwards.
//   released_bench [--hidden 2048] [--layers 24] [--steps 4] [--vocabulary 49152] [--dtype bfloat16]
//                  [--score 128] [--prompt 32] [--new 8] [--rounds 5] [--device cpu]
// Decoding is measured in pairs, with and without the cache in turn; medians. No figure is asserted.
#include "core/base/splitmix.h"
#include "core/ponder/engine/engine.h"
#include "tests/bench/engine/random_checkpoint.h"
#include "tests/bench/program.h"
#include "tests/bench/timing.h"
#include "tests/support/test_data.h"

#include <ATen/Parallel.h>

#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

using bench::load;
using bench::median;
using bench::seconds_of;

int run(int argc, char** argv) {
    const auto given = bench::options_of(argc, argv,
                                         {{"--hidden", "2048"},
                                          {"--layers", "24"},
                                          {"--steps", "4"},
                                          {"--vocabulary", "49152"},
                                          {"--score", "128"},
                                          {"--prompt", "32"},
                                          {"--new", "8"},
                                          {"--rounds", "5"},
                                          {"--device", "cpu"},
                                          {"--dtype", "bfloat16"}});
    if (!given) {
        return 2;
    }
    const std::map<std::string, std::string>& options = *given;
    const auto number = [&](const char* option) { return std::stoll(options.at(option)); };
    const bench::OuroShape shape{number("--hidden"), number("--layers"), number("--steps"),
                                 number("--vocabulary")};
    const std::optional<Precision> precision = precision_from_string(options.at("--dtype"));
    if (!precision) {
        std::fprintf(stderr, "--dtype: %s\n", precision_names().c_str());
        return 2;
    }
    const testing::TemporaryFolder folder;
    const Checkpoint checkpoint =
        bench::make_random_checkpoint(folder.path(), bench::ouro_config(shape), DType::bf16);
    LoadOptions how;
    how.device = options.at("--device");
    how.precision = *precision;
    const Engine engine = Engine::load(checkpoint, how);
    std::printf("ouro, d %lld, %lld layers, %lld steps, vocabulary %lld, %s, %s, %d threads\n",
                static_cast<long long>(shape.d), static_cast<long long>(shape.layers),
                static_cast<long long>(shape.steps), static_cast<long long>(shape.vocabulary),
                options.at("--dtype").c_str(), engine.device_name().c_str(), at::get_num_threads());

    const auto ids_of = [&](std::int64_t count) {
        std::vector<std::int32_t> ids;
        for (std::int64_t t = 0; t < count; ++t) {
            ids.push_back(static_cast<std::int32_t>(bounded(splitmix64(5, static_cast<std::uint64_t>(t)),
                                                            static_cast<std::uint64_t>(shape.vocabulary))));
        }
        return ids;
    };
    const std::vector<std::int32_t> text = ids_of(number("--score"));
    const Window window{text, 0, number("--score")};
    double flops = 0;
    std::vector<double> scored;
    for (long long round = -1; round < number("--rounds"); ++round) { // the first is a warm-up
        std::vector<WindowResult> result;
        const double seconds = seconds_of([&] { result = engine.score({&window, 1}, RecordLevel::nll); });
        const std::vector<std::int64_t>& each = result.front().tokens.flops;
        flops = std::accumulate(each.begin(), each.end(), 0.0);
        if (round >= 0) {
            scored.push_back(seconds);
        }
    }
    std::printf("scored    %lld tokens: %6.2f tokens/s, %6.1f GFLOP/s; load %.1f\n", number("--score"),
                static_cast<double>(text.size()) / median(scored), flops / median(scored) / 1e9, load());

    const std::vector<std::vector<std::int32_t>> prompts{ids_of(number("--prompt"))};
    std::map<bool, std::vector<double>> whole, first;
    std::vector<std::int32_t> with, without;
    for (long long round = 0; round < number("--rounds"); ++round) {
        for (const bool cached : {true, false}) {
            GenerateOptions generate;
            generate.use_cache = cached;
            generate.max_new_tokens = 1;
            first[cached].push_back(seconds_of([&] { (void)engine.generate(prompts, generate); }));
            generate.max_new_tokens = 1 + number("--new");
            whole[cached].push_back(
                seconds_of([&] { (cached ? with : without) = engine.generate(prompts, generate).front(); }));
        }
    }
    for (const bool cached : {true, false}) {
        std::printf("decoded   %s: %6.2f tokens/s after a prompt of %lld (%.2f s); load %.1f\n",
                    cached ? "cached each step" : "without a cache ",
                    static_cast<double>(number("--new")) / (median(whole[cached]) - median(first[cached])),
                    number("--prompt"), median(first[cached]), load());
    }
    std::printf("the same tokens: %s\n", with == without ? "yes" : "no");
    return 0;
}

} // namespace
} // namespace ponderscope

int main(int argc, char** argv) {
    return ponderscope::bench::run_program(ponderscope::run, argc, argv);
}
