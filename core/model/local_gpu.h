// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ponderscope {

/// "cuda:N" for one of the processes on a machine: modulo the number of visible GPUs, because a launcher may
/// show each process only its own, as number 0. InputError: it sees none.
std::string local_gpu(std::int64_t local_rank);

/// Bytes that tensors of this process held on its GPUs at most, all together; no value if it uses none.
std::optional<std::int64_t> peak_gpu_memory();

} // namespace ponderscope
