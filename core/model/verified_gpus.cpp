// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/verified_gpus.h"

namespace ponderscope {

std::span<const VerifiedGpu> verified_gpus() {
    static constexpr VerifiedGpu gpus[] = {{"NVIDIA H100 80GB HBM3", "0.1.0", "2026-11-27"}};
    return gpus;
}

std::string verification_of(std::string_view name, std::span<const VerifiedGpu> known) {
    for (const VerifiedGpu& gpu : known) {
        if (gpu.name == name) {
            return "Verified on " + std::string(name) + ", version " + std::string(gpu.version) + ", " +
                   std::string(gpu.date) + ".";
        }
    }
    return "Ponderscope has not been verified on " + std::string(name) +
           " yet. Run ./run gpu to check it, or compare with --device cpu.";
}

} // namespace ponderscope
