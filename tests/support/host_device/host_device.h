// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>

/// Two devices that are not the CPU, without one: LibTorch's PrivateUse1 under the names "hostgpu:0" and
/// "hostgpu:1". A program that links this library has them; Engine::load takes them as it takes "cuda:N".
///
/// Its memory lies on the host, under addresses that nobody can read: an operation reaches it through the
/// dispatcher, code of ours that takes a pointer to it dies. Each operation runs as the CPU's, on the same
/// memory. An operation between one of them and tensors of the other or of the CPU (but for numbers, which
/// have no dimensions) is refused, as a GPU refuses it. Everything that would make the host wait for a GPU is
/// counted by name. Products are rounded as a GPU's are: in the last digits by their shape, so that a row
/// among other rows comes out otherwise, and where LibTorch was told that they may be, to TF32.
///
/// With PONDERSCOPE_TEST_KERNELS set the engine finds core/kernels/cuda there, over the host form of CUDA
/// (host_kernels.cpp): the GPU's very sources, kernels and what calls them, under the same tests. Its memory
/// can then be read.
namespace ponderscope::testing {

/// How often the host waited since the last call, by operation: an element read (`_local_scalar_dense`), a
/// size that depends on values (`nonzero`, indexing by a mask), a copy to or from the host that is not
/// asynchronous (`copy to host`, `copy to device`), an event waited for (`event`).
std::map<std::string, std::int64_t> take_host_waits();

/// What the devices were asked to do: operations that compute or copy, each a kernel of a GPU or a product of
/// its library (views and fresh memory cost nothing), and the bytes of the tensors that they take and give.
/// Our own kernels count as operations, without bytes.
struct HostWork {
    std::int64_t kernels = 0, bytes = 0;
};
/// Since the last call.
HostWork take_host_work();
void add_host_work(HostWork work);

/// From the start of a program on, so that kernels of the host form of CUDA run on that memory.
void show_host_memory();

/// How much memory a device has from now on, 1 TiB at first: tensors that would go beyond it are refused as a
/// GPU refuses them (c10::OutOfMemoryError), and those that are there stay.
void set_host_memory(std::int64_t bytes, int device = 0);
/// The same once so many tensors more have found room: somebody else's program fills the device meanwhile.
void fill_host_memory_after(std::int64_t allocations, std::int64_t bytes, int device = 0);

} // namespace ponderscope::testing
