// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ponderscope {

/// A source that a run was computed without: the value of layer `source`, removed from the depth attention of
/// one layer, or of all layers that read it.
struct AblatedSource {
    std::int64_t source = 0;
    std::optional<std::int64_t> layer; ///< nothing: all layers
    friend bool operator==(const AblatedSource&, const AblatedSource&) = default;
};

/// The sources that a recorded run was computed without, by its notices (`record --ablate-source`). Any
/// thread.
std::vector<AblatedSource> ablated_sources(const RunInfo& run);

} // namespace ponderscope
