// SPDX-License-Identifier: GPL-3.0-or-later
// How much of the sum of gradients over processes the backward hides: a stack of square products trained by
// this process and others like it, steps whose buckets leave during the backward and steps whose gradients
// are summed after it, taking turns. Started by torchrun or mpirun; rank 0 prints.
//   gradient_sums_bench [LAYERS] [WIDTH] [ROWS] [PAIRS]
#include "core/base/error.h"
#include "core/train/data_parallel.h"
#include "tests/bench/program.h"
#include "tests/bench/timing.h"

#include <ATen/ATen.h>

#include <cstdlib>

namespace ponderscope::bench {
namespace {

int measure(int argc, char** argv) {
    const auto number = [&](int place, std::int64_t usual) {
        return argc > place ? std::atoll(argv[place]) : usual;
    };
    const std::int64_t layers = number(1, 8);
    const std::int64_t width = number(2, 768);
    const std::int64_t rows = number(3, 512);
    const std::int64_t pairs = number(4, 15);
    const World world = world_from_environment();
    std::string why;
    const auto collectives = open_collectives(world, {}, why);
    if (!collectives) {
        throw InputError("Start it by torchrun or mpirun in two or more processes: " + why + ".");
    }
    at::manual_seed(1);
    std::vector<std::pair<std::string, at::Tensor>> parameters;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        parameters.emplace_back("w" + std::to_string(layer), at::randn({width, width}) * 0.03);
        parameters.back().second.requires_grad_(true);
    }
    AdamW optimizer(parameters, {});
    DataParallel parallel(collectives.get(), world);
    parallel.watch(optimizer);
    const at::Tensor input = at::randn({rows, width});
    std::vector<double> seconds[2];
    std::vector<double> waited[2];
    for (std::int64_t pair = 0; pair <= pairs; ++pair) {
        for (const bool overlapped : {pair % 2 == 0, pair % 2 != 0}) {
            static_cast<void>(collectives->gather("")); // all begin together
            const double before = parallel.seconds_waited();
            const double took = seconds_of([&] {
                optimizer.zero_gradients();
                at::Tensor state = input;
                for (const auto& [name, weight] : parameters) {
                    state = at::tanh(at::linear(state, weight)) + state;
                }
                const at::Tensor loss = state.square().mean();
                if (overlapped) {
                    parallel.last_backward_begins();
                }
                loss.backward();
                parallel.finish_gradients();
            });
            if (pair > 0) { // the first one warms up
                seconds[overlapped ? 1 : 0].push_back(took);
                waited[overlapped ? 1 : 0].push_back(parallel.seconds_waited() - before);
            }
        }
    }
    if (world.rank == 0) {
        const double after = median(waited[0]);
        const double during = median(waited[1]);
        std::printf("%s, %lld processes, %.1f MB of gradients; medians of %lld pairs, load %.1f\n",
                    collectives->name().c_str(), static_cast<long long>(world.size),
                    static_cast<double>(layers * width * width * 4) / 1e6, static_cast<long long>(pairs),
                    load());
        std::printf("summed after the backward   step %7.2f ms   waited %7.2f ms\n", 1e3 * median(seconds[0]),
                    1e3 * after);
        std::printf("summed during the backward  step %7.2f ms   waited %7.2f ms   hidden %.2f of it\n",
                    1e3 * median(seconds[1]), 1e3 * during, 1 - during / after);
    }
    collectives->leave();
    return 0;
}

} // namespace
} // namespace ponderscope::bench

int main(int argc, char** argv) {
    return ponderscope::bench::run_program(ponderscope::bench::measure, argc, argv);
}
