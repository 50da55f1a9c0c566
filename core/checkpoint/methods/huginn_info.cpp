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
            .peculiarity = [](const ModelConfig&) -> std::string {
                return "the authors' bf16 runs round the rotation table, and draw a new start state at every "
                       "forward";
            },
            .untrained = "which is trained with a number of steps drawn for every forward"};
}

} // namespace ponderscope
