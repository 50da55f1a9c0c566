// SPDX-License-Identifier: GPL-3.0-or-later
// How long a replay takes: median and 99th percentile over moved thresholds, for 100,000 and 1,000,000
// tokens. A frame is 16 ms; a million tokens may take 100 ms. Single thread.
//   policy_bench [K]
#include "core/base/splitmix.h"
#include "core/policy/replay.h"
#include "tests/bench/timing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace ponderscope;

ReplayTable made_up(std::size_t tokens, std::int64_t last) {
    constexpr std::size_t length = 2048;
    ReplayTable table;
    table.columns = SignalColumns(last, tokens);
    for (std::size_t signal = 0; signal < policy_signals; ++signal) {
        const auto which = static_cast<PolicySignal>(signal);
        table.columns.add(which);
        for (std::int64_t k = 0; k <= last; ++k) {
            const std::span<float> column = table.columns.column(which, k);
            for (std::size_t i = 0; i < tokens; ++i) {
                column[i] = static_cast<float>(token_draw(signal, static_cast<std::uint64_t>(k), i));
            }
        }
    }
    for (std::size_t i = 0; i < tokens; ++i) {
        table.places.push_back({static_cast<std::uint32_t>(i / length),
                                static_cast<std::uint32_t>(i % length), static_cast<std::uint32_t>(length)});
    }
    for (std::size_t left = tokens; left > 0; left -= std::min(left, length)) {
        table.sequences.push_back(static_cast<std::int64_t>(std::min(left, length)));
    }
    table.ran.assign(tokens, static_cast<std::int32_t>(last));
    table.nll.assign(tokens, 1.0F);
    FlopsModel flops;
    flops.steps.assign(static_cast<std::size_t>(last) + 1, 100'000'000);
    flops.key = 4096;
    flops.windows.assign(24, 0);
    flops.decisions.assign(static_cast<std::size_t>(last), 8192);
    flops.read_out = 100'000'000;
    flops.visibility = FlopsModel::Visibility::two_dimensional; // the one that takes longest to count
    table.flops = flops;
    for (const std::int64_t tokens_of_it : table.sequences) {
        table.windows.push_back(plan_windows(tokens_of_it, 2048, 1024));
    }
    table.context.own_threshold = 0.5;
    table.finish();
    return table;
}

} // namespace

int main(int argc, char** argv) {
    const std::int64_t last = argc > 1 ? std::atoll(argv[1]) : 3;
    std::printf("K = %lld\n%-20s %10s %12s %12s\n", static_cast<long long>(last), "policy", "tokens",
                "median ms", "99 % ms");
    for (const std::size_t tokens : {std::size_t{100'000}, std::size_t{1'000'000}}) {
        const ReplayTable table = made_up(tokens, last);
        for (const char* text : {"learned:theta=0.5", "uniform:rate=1.2", "oracle", "calm_margin:lambda=0.9",
                                 "entropy:theta=0.5", "entropy_difference", "argmax_stable:n=2"}) {
            PolicySpec spec = PolicySpec::parse(text);
            ReplayResult result;
            std::vector<double> times;
            bench::Busy busy;
            busy.begin();
            for (int i = 0; i < 101; ++i) {
                if (!spec.kind->parameters.empty() && !spec.kind->parameters.front().whole) {
                    spec = spec.with("threshold", 0.1 + 0.008 * i);
                }
                times.push_back(1e3 * bench::seconds_of([&] { replay(table, spec, result); }));
            }
            busy.end();
            std::sort(times.begin(), times.end());
            std::printf("%-20s %10zu %12.2f %12.2f  %s\n", spec.kind->name.c_str(), tokens, times[50],
                        times[99], busy.text().c_str());
        }
    }
}
