// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

/// A small host form of CUDA, so that the kernels' very sources run in tests, without a GPU and a CUDA
/// compiler: include/ beside this file comes before the compiler's own folders.
///
/// The threads of a block are fibres of one host thread. One runs until it waits for others (a barrier, a
/// shuffle) or is done; who is next is chosen by set_order(), so that a kernel that only works in one order
/// shows it. Blocks run one after the other, each over spoilt shared memory. What no CUDA program may do is a
/// launch failure that says so: a barrier that not all threads reach, a shuffle that not all its lanes take
/// part in.
///
/// In a build with ThreadSanitizer every fibre is a thread to it, ordered by barriers alone (never by
/// shuffles or by the order in which fibres happened to run): what two threads do to one place without a
/// barrier between them is a race, on whichever GPU it would have gone well. Races between blocks are not
/// looked for.
///
/// No form here: streams (a launch returns when the kernel is done), dynamic shared memory, blocks whose size
/// is no multiple of 32.

struct uint3 {
    unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
    constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z) {}
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace host_cuda {

enum class Order {
    forward,  ///< lanes and blocks by rising number
    backward, ///< by falling number
    shuffled, ///< anew in each round; warps also fall behind each other
};

/// For the launches from now on.
void set_order(Order order, std::uint64_t seed = 0);

/// Runs `thread` once for each thread of the grid.
void launch(dim3 grid, dim3 block, std::size_t shared, void* stream, const std::function<void()>& thread);

/// Launches from now on are also told, as what does them again; an empty function: no more.
void hear_launches(std::function<void(std::function<void()>)> listener);

/// Launches since the last call.
std::int64_t take_launches();

/// The first error since the last call, as CUDA's number; 0: none. Its text stays until the next error.
int take_error();
const char* error_text();

void block_barrier();
void warp_barrier(unsigned lanes);
std::uint64_t exchange(unsigned lanes, std::uint64_t value, int source);
/// The values of all lanes of a warp; those of lanes that take no part are 0.
void exchange_all(unsigned lanes, std::uint64_t value, std::uint64_t (&all)[32]);
/// A launch failure: memory that has to begin at a multiple of 16 bytes does not.
void misaligned();

} // namespace host_cuda
