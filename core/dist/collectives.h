// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/dist/world.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope {

/// Numbers that take part in a collective: contiguous, of as many elements and of one type in every process.
struct Numbers {
    void* data = nullptr;
    std::int64_t count = 0;
    bool fp64 = false; ///< else fp32
};

/// What the processes of a world say to each other. All of them make the same calls in the same order. A
/// world of one has none. EnvironmentError: another process ended or does not answer; what was computed is of
/// no use then. Threads: one at a time.
class Collectives {
public:
    /// A sum on its way.
    class Pending {
    public:
        virtual ~Pending() = default;
        /// Returns when the sum is there. Once.
        virtual void wait() = 0;
    };

    virtual ~Collectives() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    /// The numbers lie on the GPU that these were opened for; else in the memory of the CPU.
    [[nodiscard]] virtual bool on_gpu() const { return false; }
    /// Begins to replace the numbers by their sums over all processes, the same bits in each of them. They
    /// must stay where they are, untouched, until the wait; several may be on their way.
    [[nodiscard]] virtual std::unique_ptr<Pending> begin_sum(Numbers numbers) = 0;
    /// Those of rank 0 for all.
    virtual void broadcast(Numbers numbers) = 0;
    /// What each process says, by rank; for some kilobytes. Also the barrier: it returns when all have
    /// spoken. The sentence of the error names the processes that did not.
    [[nodiscard]] virtual std::vector<std::string> gather(const std::string& words) = 0;
    /// The last call, when all went well: nobody waits for this process any more.
    virtual void leave() = 0;

    void sum(Numbers numbers) { begin_sum(numbers)->wait(); }
};

/// How collectives are opened.
struct CollectivesRequest {
    bool gpu = false;                  ///< the numbers lie on a GPU: NCCL where it is built in
    std::int64_t gpu_index = 0;        ///< which
    std::chrono::seconds timeout{300}; ///< for all processes to come
};

/// Connects the processes of \p world, or says in \p why what keeps it from that and returns null:
///   MASTER_ADDR and MASTER_PORT are set (torchrun does): c10d of LibTorch, NCCL for numbers on a GPU and
///   Gloo
///     for others, over a TCPStore at that address;
///   else mpirun (or srun --mpi=pmix) of Open MPI: MPI, by a library of ours that is opened for it.
/// InputError: the port is in use. EnvironmentError: a process did not come in time; the sentence names it.
std::unique_ptr<Collectives> open_collectives(const World& world, const CollectivesRequest& request,
                                              std::string& why);

/// "rank 3", "ranks 3 and 5", "ranks 3, 5 and 2 others".
std::string name_ranks(const std::vector<std::int64_t>& ranks);

} // namespace ponderscope
