// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

MethodInfo huginn_info() {
    return {.kind = MethodKind::huginn,
            .summary =
                "The core blocks run again over a state, each time with the prelude's output (Huginn, arXiv "
                "2502.05171, and retrofits of other models)",
            .has_section = false,
            .any_steps = true,
            .exits_select = true,
            .architecture = Architecture::huginn_raven,
            .read =
                [](const ConfigReader& reader, ModelConfig& config) {
                    config.ponder.max_steps = reader.size("mean_recurrence", 32, config_limits::steps) - 1;
                },
            .untrained = "which is trained with a number of steps drawn for every forward"};
}

} // namespace ponderscope
