// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

MethodInfo dory_info() {
    return {.kind = MethodKind::dory,
            .summary =
                "The middle layers loop over their own output plus the input layers' output (Dory, NVIDIA)",
            .has_section = false,
            .any_steps = true,
            .exits_select = true,
            .architecture = Architecture::dory,
            .read =
                [](const ConfigReader& reader, ModelConfig& config) {
                    const bool export_format =
                        reader.json().has("dory_format_version") || reader.json().has("hybrid_layer_pattern");
                    config.ponder.max_steps =
                        reader.size("n_recurrent_loops", export_format ? 1 : 2, config_limits::steps) - 1;
                },
            .untrained = "whose learned scales need the optimiser of its authors"};
}

} // namespace ponderscope
