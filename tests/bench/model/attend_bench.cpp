// SPDX-License-Identifier: GPL-3.0-or-later
// Attention of the active tokens of a pondering step against that of all tokens, and ours against the
// library's causal kernel. Usage: attend_bench [sequences length [rounds]]
#include "core/model/attend.h"
#include "tests/bench/timing.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

using namespace ponderscope;

namespace {

struct Action {
    std::string name;
    double active; ///< part of the tokens that are queries
    std::function<void()> run;
    void operator()() const { run(); }
};

/// Ranges of the tokens that are active: each sees its sequence up to itself.
at::Tensor active_ranges(std::int64_t sequences, std::int64_t length, double rate) {
    std::mt19937_64 random(1);
    std::vector<std::int32_t> numbers;
    for (std::int64_t s = 0; s < sequences; ++s) {
        for (std::int64_t t = 0; t < length; ++t) {
            if (std::uniform_real_distribution<double>(0, 1)(random) < rate) {
                numbers.push_back(static_cast<std::int32_t>(s * length));
                numbers.push_back(static_cast<std::int32_t>(s * length + t + 1));
            }
        }
    }
    return at::tensor(numbers, at::kInt).view({-1, 1, 2});
}

void compare(std::int64_t sequences, std::int64_t length, std::int64_t query_heads, std::int64_t kv_heads,
             std::int64_t head_size, at::ScalarType type, int rounds) {
    const auto n = sequences * length;
    const auto q = at::randn({n, query_heads, head_size}).to(type);
    const auto k = at::randn({n, kv_heads, head_size}).to(type);
    const auto v = at::randn({n, kv_heads, head_size}).to(type);
    const double scale = 1 / std::sqrt(static_cast<double>(head_size));
    Visibility causal;
    for (std::int64_t s = 0; s < sequences; ++s) {
        causal.causal.push_back({s * length, length, s * length, 0});
    }
    const auto stacked = [&](const at::Tensor& rows) {
        return rows.view({sequences, length, rows.size(1), head_size}).transpose(1, 2);
    };
    std::vector<Action> actions = {
        {"library's causal kernel", 1,
         [&] {
             at::scaled_dot_product_attention(stacked(q), stacked(k), stacked(v), {}, 0.0, true, scale,
                                              query_heads != kv_heads);
         }},
        {"attend, causal blocks", 1, [&] { attend(q, k, v, causal, scale); }},
    };
    for (const double rate : {1.0, 0.9, 0.5, 0.25, 0.1}) {
        Visibility some;
        some.ranges = active_ranges(sequences, length, rate);
        const auto queries = q.narrow(0, 0, some.ranges.size(0));
        const double part = static_cast<double>(some.ranges.size(0)) / static_cast<double>(n);
        actions.push_back({"attend, ranges", part, [=] { attend(queries, k, v, some, scale); }});
    }
    const auto timed = bench::interleaved(actions, rounds);
    std::printf("%ld x %ld tokens, %ld heads on %ld of %ld, %s, %d threads\n", static_cast<long>(sequences),
                static_cast<long>(length), static_cast<long>(query_heads), static_cast<long>(kv_heads),
                static_cast<long>(head_size), at::toString(type), at::get_num_threads());
    for (std::size_t i = 0; i < actions.size(); ++i) {
        // Two products over the visible half of the square.
        const double flops =
            2.0 * actions[i].active * static_cast<double>(n * (length + 1) * query_heads * head_size);
        const double seconds = timed[i].seconds;
        std::printf("  %-26s %5.1f %% active %9.5f s  %6.1f GFLOP/s  %5.2f x attend over all, time per "
                    "active token %4.2f x (%s)\n",
                    actions[i].name.c_str(), 100 * actions[i].active, seconds, flops / seconds * 1e-9,
                    seconds / timed[1].seconds, seconds / (actions[i].active * timed[1].seconds),
                    timed[i].machine.c_str());
    }
}

} // namespace

int main(int argc, char** argv) {
    const c10::NoGradGuard no_grad;
    const auto argument = [&](int i, std::int64_t otherwise) {
        return argc > i ? std::atoll(argv[i]) : otherwise;
    };
    const int rounds = static_cast<int>(argument(3, 5));
    for (const auto type : {at::kFloat, at::kBFloat16}) {
        compare(argument(1, 8), argument(2, 512), 8, 8, 64, type, rounds);
        compare(argument(1, 8), argument(2, 512), 16, 4, 64, type, rounds);
    }
    return 0;
}
