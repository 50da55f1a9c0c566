// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ponderscope {

/// "cuda:N" for a process. N is the local rank modulo the number of visible GPUs, because a launcher may show
/// each process only one GPU, as number 0. InputError: no GPU is visible.
std::string local_gpu(std::int64_t local_rank);

/// The largest memory, in bytes, that tensors of this process held on all its GPUs together. No value if the
/// process uses no GPU.
std::optional<std::int64_t> peak_gpu_memory();

} // namespace ponderscope
