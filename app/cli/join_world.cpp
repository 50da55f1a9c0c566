// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/join_world.h"

#include "app/cli/console.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/model/local_gpu.h"

#include <iostream>

namespace ponderscope::cli {

void JoinWorld::add_to(CLI::App& verb) {
    verb.add_option("--world-timeout", timeout,
                    "Of several processes: seconds to wait for all of them to come")
        ->type_name("SECONDS")
        ->check(CLI::Range(1, 86'400))
        ->capture_default_str();
}

void JoinWorld::enter(std::string& device, ProgressStyle& style, bool must_talk, const std::string& purpose) {
    world = world_from_environment();
    if (world.size == 1) {
        return;
    }
    CollectivesRequest request;
    request.timeout = std::chrono::seconds(timeout);
    if (device == "cuda") {
        device = local_gpu(world.local_rank);
    }
    if (must_talk && device.starts_with("cuda:")) {
        request.gpu = true;
        request.gpu_index = std::atoll(device.c_str() + 5);
    }
    std::string why;
    collectives = open_collectives(world, request, why);
    if (collectives == nullptr && must_talk) {
        throw InputError(world.launcher + " started " + std::to_string(world.size) +
                         " processes that must talk to each other, and they cannot: " + why +
                         "; set MASTER_ADDR (the host of rank 0) and MASTER_PORT for all of them, or use "
                         "torchrun or mpirun (resources/docs/clusters.md).");
    }
    if (style == ProgressStyle::automatic) {
        if (world.rank > 0) {
            style = ProgressStyle::none; // one line that moves is enough
        } else {
            std::cerr << world.launcher << "  " << world.size << " processes  "
                      << (collectives ? visible(collectives->name()) : "not compared beforehand: " + why)
                      << "  " << visible(purpose) << '\n';
        }
    }
}

} // namespace ponderscope::cli
