// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <string>
#include <vector>

namespace ponderscope {

/// A row of resources/docs/architectures.md, which a test compares with this table.
struct ArchitectureInfo {
    Architecture architecture;
    std::string opens; ///< models in this format
    std::string steps; ///< what a step is
    /// Whose outputs the reference cases hold, to 1e-4 in logits.
    std::string exact_against;
    std::string notes; ///< what is refused or differs
};

/// One entry an architecture, in the order of architectures.def.
const std::vector<ArchitectureInfo>& architecture_infos();

/// The table of the page: a head and a line an architecture.
std::string architectures_as_markdown();

} // namespace ponderscope
