// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef PONDERSCOPE_METHODS_COMPUTE
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

MethodInfo parcae_info() {
    return {.kind = MethodKind::parcae,
            .summary = "As huginn, with an injection that lets the state decay and pre-norm blocks (Parcae)",
            .has_section = false,
            .any_steps = true,
            .exits_select = true,
            .read = [](const ConfigReader& reader, ModelConfig& config) {
                config.ponder.max_steps = reader.size("mean_recurrence", 8, config_limits::steps) - 1;
            }};
}

} // namespace ponderscope

#else
#include "core/ponder/methods/recurrent.h"

namespace ponderscope {

MethodEntry parcae_method() {
    return MethodEntry::of<Recurrent>(MethodKind::parcae);
}

} // namespace ponderscope
#endif
