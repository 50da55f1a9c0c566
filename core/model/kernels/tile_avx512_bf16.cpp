// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/kernels/tile_bf16.h"

namespace ponderscope::kernels {

// Constant-initialised: no code of this file runs before the processor is known.
extern const TileKernels tile_kernels_avx512_bf16;
constexpr TileKernels tile_kernels_avx512_bf16 = with_bf16(kernels_of("avx512_bf16"));

} // namespace ponderscope::kernels
