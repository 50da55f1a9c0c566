// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ponderscope {

/// A GPU on which `./run gpu` passed.
struct VerifiedGpu {
    std::string_view name;    ///< the driver's name: "NVIDIA H100 80GB HBM3"
    std::string_view version; ///< version of Ponderscope
    std::string_view date;    ///< date of the report in resources/docs/gpu.md, ISO 8601
};

/// The GPUs with a report in resources/docs/gpu.md.
std::span<const VerifiedGpu> verified_gpus();

/// One sentence about the GPU \p name: date and version of the verification, or how to verify it.
std::string verification_of(std::string_view name, std::span<const VerifiedGpu> known = verified_gpus());

} // namespace ponderscope
