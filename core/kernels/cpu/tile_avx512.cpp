// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cpu/tile_loops.h"

namespace ponderscope::kernels {

// Constant-initialised: no code of this file runs before the processor is known.
extern const TileKernels tile_kernels_avx512;
constexpr TileKernels tile_kernels_avx512 = kernels_of("avx512");

} // namespace ponderscope::kernels
