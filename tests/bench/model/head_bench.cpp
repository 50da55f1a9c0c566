// SPDX-License-Identifier: GPL-3.0-or-later
// What the read-out costs beside the bare product of states and head, and beside logits with a log-softmax
// over them. Usage: head_bench [tokens vocabulary d [rounds]]
#include "core/model/head.h"
#include "tests/bench/model/timing.h"

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

void compare(std::int64_t n, std::int64_t vocabulary, std::int64_t d, at::ScalarType type, int rounds) {
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
    const auto seconds = bench::fastest(actions, rounds);
    const double flops =
        2.0 * static_cast<double>(n) * static_cast<double>(vocabulary) * static_cast<double>(d);
    std::printf("%ld tokens x %ld words, d %ld, %s, %d threads\n", static_cast<long>(n),
                static_cast<long>(vocabulary), static_cast<long>(d), at::toString(type),
                at::get_num_threads());
    for (std::size_t i = 0; i < actions.size(); ++i) {
        std::printf("  %-48s %8.4f s  %6.1f GFLOP/s  %5.2f x its bare products\n", actions[i].name.c_str(),
                    seconds[i], actions[i].products * flops / seconds[i] * 1e-9,
                    seconds[i] / (actions[i].products * seconds[0]));
    }
}

} // namespace

int main(int argc, char** argv) {
    const c10::NoGradGuard no_grad;
    const auto argument = [&](int i, std::int64_t otherwise) {
        return argc > i ? std::atoll(argv[i]) : otherwise;
    };
    const int rounds = static_cast<int>(argument(4, 3));
    for (const auto type : {at::kFloat, at::kBFloat16}) {
        compare(argument(1, 2048), argument(2, 50304), argument(3, 512), type, rounds);
    }
    if (argc < 2) {
        compare(4096, 2048, 128, at::kFloat, 4 * rounds);
        compare(1, 50304, 512, at::kFloat, 4 * rounds);
    }
    return 0;
}
