// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Backend;
class Store;
} // namespace c10d

namespace ponderscope {

inline constexpr const char* open_nccl_name = "ponderscope_open_nccl";

/// The one door of libponderscope_nccl.so, which needs LibTorch's CUDA half (core/model/cuda_library.h says
/// why that is not linked). Collectives of it wait \p seconds at most.
extern "C" c10d::Backend* ponderscope_open_nccl(c10d::Store* store, int rank, int size, int gpu, int seconds);

} // namespace ponderscope
