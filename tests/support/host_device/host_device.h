// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>

/// A device that is not the CPU, without one: LibTorch's PrivateUse1 under the name "hostgpu". A program that
/// links this library has it; Engine::load takes it as it takes "cuda".
///
/// Its memory lies on the host, under addresses that nobody can read: an operation reaches it through the
/// dispatcher, code of ours that takes a pointer to it dies. Each operation runs as the CPU's, on the same
/// memory. An operation between it and tensors of the CPU (but for numbers, which have no dimensions) is
/// refused, as a GPU refuses it. Everything that would make the host wait for a GPU is counted by name.
namespace ponderscope::testing {

/// How often the host waited since the last call, by operation: an element read (`_local_scalar_dense`), a
/// size that depends on values (`nonzero`, indexing by a mask), a copy to or from the host that is not
/// asynchronous (`copy to host`, `copy to device`), an event waited for (`event`).
std::map<std::string, std::int64_t> take_host_waits();

} // namespace ponderscope::testing
