// SPDX-License-Identifier: GPL-3.0-or-later
// What the read-out costs beside the bare product of states and head, and beside logits with a log-softmax
// over them; both dtypes, and our loops alone, as where the library has no products for the processor.
// Options with their presets are below: --noise 2 lets two processes stream memory meanwhile, --only names a
// part of the lines wanted beside the bare product.
#include "core/model/head.h"
#include "core/model/head_cpu.h"
#include "tests/bench/noise.h"
#include "tests/bench/timing.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

using namespace ponderscope;

namespace {

struct Action {
    std::string name;
    double products; ///< head products it cannot do without
    std::function<void()> run;
    void operator()() const { run(); }
};

void compare(std::int64_t n, std::int64_t vocabulary, std::int64_t d, at::ScalarType type, int rounds,
             const std::string& only) {
    const auto h = at::randn({n, d}).to(type);
    HeadWeights weights;
    weights.head = (at::randn({vocabulary, d}) * (3 / std::sqrt(static_cast<double>(d)))).to(type);
    weights.embedding = at::randn({vocabulary, d}).to(type);
    const auto targets = at::randint(0, vocabulary, {n}, at::kLong);
    const auto previous = (h.to(at::kFloat) + at::randn({n, d}) * 0.3).to(type);

    HeadRequest nll;
    nll.targets = targets;
    HeadRequest statistics = nll;
    statistics.distribution = true;
    statistics.candidates = 10;
    HeadRequest with_previous = statistics;
    with_previous.previous = previous;
    HeadRequest mixture;
    mixture.mixture = true;
    HeadRequest both = statistics;
    both.mixture = true;
    HeadRequest truncated = mixture;
    truncated.top_k = 100;

    // The product at its best: the result is a buffer that lies in the cache and is used again.
    const std::int64_t rows = std::min<std::int64_t>(n, 512);
    const std::int64_t words = std::min<std::int64_t>(vocabulary, 512);
    auto tile = at::empty({rows, words}, h.options());
    const auto bare = [&] {
        for (std::int64_t i = 0; i < n; i += rows) {
            for (std::int64_t v = 0; v < vocabulary; v += words) {
                const auto tokens = h.narrow(0, i, std::min(rows, n - i));
                const auto table = weights.head.narrow(0, v, std::min(words, vocabulary - v));
                auto out = tile.narrow(0, 0, tokens.size(0)).narrow(1, 0, table.size(0));
                at::mm_out(out, tokens, table.t());
            }
        }
    };
    const auto plain = [&] {
        for (std::int64_t i = 0; i < n; i += 512) {
            const auto count = std::min<std::int64_t>(512, n - i);
            const auto logits = at::mm(h.narrow(0, i, count), weights.head.t()).to(at::kFloat);
            at::log_softmax(logits, -1).gather(1, targets.narrow(0, i, count).unsqueeze(1));
        }
    };
    std::vector<Action> actions = {
        {"bare product (at::mm, tiles of 512 x 512)", 1, bare},
        {"logits + log_softmax + gather, rows of 512", 1, plain},
        {"read_out: NLL and rank", 1, [&] { read_out(h, weights, nll); }},
        {"read_out: + entropy, margin, top 10", 1, [&] { read_out(h, weights, statistics); }},
        {"read_out: + KL to the step before", 2, [&] { read_out(h, weights, with_previous); }},
        {"read_out: expected embedding alone", 2, [&] { read_out(h, weights, mixture); }},
        {"read_out: expected embedding + all statistics", 2, [&] { read_out(h, weights, both); }},
        {"read_out: expected embedding of the top 100", 1, [&] { read_out(h, weights, truncated); }},
    };
    std::erase_if(actions, [&](const Action& action) {
        return action.name.find("bare") == std::string::npos && action.name.find(only) == std::string::npos;
    });
    const auto timed = bench::interleaved(actions, rounds);
    const double flops =
        2.0 * static_cast<double>(n) * static_cast<double>(vocabulary) * static_cast<double>(d);
    std::printf("%ld tokens x %ld words, d %ld, %s, %d threads, medians of %d\n", static_cast<long>(n),
                static_cast<long>(vocabulary), static_cast<long>(d), at::toString(type),
                at::get_num_threads(), rounds);
    for (std::size_t i = 0; i < actions.size(); ++i) {
        std::printf(
            "  %-46s %8.4f s  %6.1f GFLOP/s  %5.2f x its bare products, %.2f x in processor time (%s)\n",
            actions[i].name.c_str(), timed[i].seconds, actions[i].products * flops / timed[i].seconds * 1e-9,
            timed[i].seconds / (actions[i].products * timed[0].seconds),
            timed[i].processor / (actions[i].products * timed[0].processor), timed[i].machine.c_str());
    }
}

} // namespace

int main(int argc, char** argv) {
    const auto options = bench::options_of(argc, argv,
                                           {{"--tokens", "2048"},
                                            {"--vocabulary", "50304"},
                                            {"--d", "512"},
                                            {"--rounds", "5"},
                                            {"--dtype", "both"},
                                            {"--noise", "0"},
                                            {"--only", ""}});
    if (!options) {
        return 2;
    }
    const bench::MemoryNoise noise(std::stoi(options->at("--noise")));
    const c10::NoGradGuard no_grad;
    for (const auto type : {at::kFloat, at::kBFloat16}) {
        const auto& wanted = options->at("--dtype");
        if (wanted == "both" || (wanted == "float32") == (type == at::kFloat)) {
            compare(std::stoll(options->at("--tokens")), std::stoll(options->at("--vocabulary")),
                    std::stoll(options->at("--d")), type, std::stoi(options->at("--rounds")),
                    options->at("--only"));
        }
    }
    return 0;
}
