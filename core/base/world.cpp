// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/world.h"

#include "core/base/error.h"
#include "core/base/words.h"

#include <cstdlib>
#include <string_view>

namespace ponderscope {
namespace {

std::int64_t number_in(const char* variable) {
    const char* text = std::getenv(variable);
    const std::string_view value = text == nullptr ? std::string_view() : text;
    const std::int64_t number = parse_count(value);
    if (number < 0) {
        throw InputError(ErrorId::usage_value,
                         std::string("The environment variable ") + variable +
                             ": expected a whole number from 0, found " +
                             (text == nullptr ? "nothing" : "\"" + std::string(value.substr(0, 40)) + "\"") +
                             "; correct the launcher, which sets this variable.");
    }
    return number;
}

struct Launcher {
    const char* name;
    const char* rank;
    const char* size;
    const char* local_rank; ///< may be missing
};

// From the innermost to the outermost: srun may start torchrun, and mpirun may start both.
constexpr Launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    // SLURM_STEP_NUM_TASKS, not SLURM_NTASKS: a batch script has SLURM_PROCID and SLURM_NTASKS, too, but is
    // one process.
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};

} // namespace

World world_from_environment() {
    for (const Launcher& launcher : launchers) {
        if (std::getenv(launcher.rank) == nullptr || std::getenv(launcher.size) == nullptr) {
            continue;
        }
        World world{number_in(launcher.rank), number_in(launcher.size), 0, launcher.name};
        world.local_rank =
            std::getenv(launcher.local_rank) != nullptr ? number_in(launcher.local_rank) : world.rank;
        if (world.rank >= world.size || world.size > most_processes) {
            throw InputError(ErrorId::usage_value,
                             std::string(launcher.rank) + " and " + launcher.size +
                                 ": expected a rank below the size, and at most " +
                                 std::to_string(most_processes) + " processes, found rank " +
                                 std::to_string(world.rank) + " of " + std::to_string(world.size) +
                                 "; correct the launcher, which sets these variables.");
        }
        return world;
    }
    return {};
}

} // namespace ponderscope
