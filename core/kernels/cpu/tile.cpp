// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cpu/tile.h"

#include <array>
#include <string_view>

namespace ponderscope::kernels {

extern const TileKernels tile_kernels_baseline;
#if defined(__x86_64__)
extern const TileKernels tile_kernels_avx2;
#endif

namespace {

/// The kernels that this processor runs, the best first; unused places are null. AVX-512 has no kernels of
/// its own: attention is too small a part of a recording for it to win.
std::array<const TileKernels*, 2> available() {
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return {avx2 ? &tile_kernels_avx2 : nullptr, &tile_kernels_baseline};
#else
    return {&tile_kernels_baseline, nullptr};
#endif
}

} // namespace

const TileKernels& tile_kernels() {
    static const TileKernels* const best = [] {
        for (const auto* kernels : available()) {
            if (kernels != nullptr) {
                return kernels;
            }
        }
        return &tile_kernels_baseline;
    }();
    return *best;
}

const TileKernels* tile_kernels(const char* name) {
    for (const auto* kernels : available()) {
        if (kernels != nullptr && std::string_view(kernels->name) == name) {
            return kernels;
        }
    }
    return nullptr;
}

} // namespace ponderscope::kernels
