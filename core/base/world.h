// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace ponderscope {

/// Largest number of processes. The name of a shard has four digits for the rank.
inline constexpr std::int64_t most_processes = 10'000;

/// The number of processes that a launcher started, and the rank of this process.
struct World {
    std::int64_t rank = 0;
    std::int64_t size = 1;
    std::int64_t local_rank = 0; ///< rank among the processes of this machine; selects the GPU
    std::string launcher;        ///< "torchrun", "srun", "mpirun"; empty: no launcher
};

/// Reads the variables that torchrun (RANK, WORLD_SIZE, LOCAL_RANK), srun (SLURM_PROCID,
/// SLURM_STEP_NUM_TASKS, SLURM_LOCALID) and mpirun (OMPI_COMM_WORLD_*, or PMI_* of MPICH and Intel MPI) set.
/// The innermost launcher wins: torchrun within srun counts as torchrun. Without a launcher the world has one
/// process. InputError: variables that contradict each other.
World world_from_environment();

} // namespace ponderscope
