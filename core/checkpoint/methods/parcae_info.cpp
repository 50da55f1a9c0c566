// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

MethodInfo parcae_info() {
    return {.kind = MethodKind::parcae,
            .summary = "As huginn, with a state that decays and pre-norm blocks (Parcae)",
            .has_section = false,
            .any_steps = true,
            .exits_select = true,
            .architecture = Architecture::parcae,
            .read =
                [](const ConfigReader& reader, ModelConfig& config) {
                    config.ponder.max_steps = reader.size("mean_recurrence", 8, config_limits::steps) - 1;
                },
            .untrained = "which is trained with a number of steps drawn for every sequence"};
}

} // namespace ponderscope
