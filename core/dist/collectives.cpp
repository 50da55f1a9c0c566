// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/dist/collectives.h"

#include "core/base/plugin.h"
#include "core/dist/c10d.h"
#include "core/dist/mpi/library.h"

#include <algorithm>
#include <cstdlib>

namespace ponderscope {
namespace {

bool is_set(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

std::unique_ptr<Collectives> open_mpi([[maybe_unused]] const World& world,
                                      [[maybe_unused]] const CollectivesRequest& request, std::string& why) {
#ifdef PONDERSCOPE_HAS_MPI
    void* door = function_of_plugin("libponderscope_mpi.so", open_mpi_name, why);
    if (door == nullptr) {
        why = "MPI could not be loaded (" + why + ")";
        return nullptr;
    }
    return std::unique_ptr<Collectives>(
        reinterpret_cast<decltype(&ponderscope_open_mpi)>(door)(world, request.timeout, why));
#else
    why = "this build has no MPI (libopenmpi-dev was not there)";
    return nullptr;
#endif
}

} // namespace

std::string name_ranks(const std::vector<std::int64_t>& ranks) {
    std::string names = ranks.size() == 1 ? "rank " : "ranks ";
    const std::size_t named = std::min<std::size_t>(ranks.size(), 8);
    for (std::size_t i = 0; i < named; ++i) {
        const bool last = i + 1 == ranks.size();
        names += (i == 0 ? "" : last ? " and " : ", ") + std::to_string(ranks[i]);
    }
    return named == ranks.size() ? names : names + " and " + std::to_string(ranks.size() - named) + " others";
}

std::unique_ptr<Collectives> open_collectives(const World& world, const CollectivesRequest& request,
                                              std::string& why) {
    if (is_set("MASTER_ADDR") && is_set("MASTER_PORT")) {
        return open_c10d(world, request, why);
    }
    // What a process of Open MPI finds its neighbours by; without it MPI would be alone, whatever the
    // variables of rank and size say.
    if (is_set("PMIX_NAMESPACE") || is_set("OMPI_COMM_WORLD_JOBID")) {
        return open_mpi(world, request, why);
    }
    why = "neither MASTER_ADDR and MASTER_PORT nor a running mpirun say where the others are";
    return nullptr;
}

} // namespace ponderscope
