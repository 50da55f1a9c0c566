// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef PONDERSCOPE_METHODS_COMPUTE
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

MethodInfo huginn_info() {
    return {.kind = MethodKind::huginn,
            .summary = "Between prelude and coda the core blocks run over a state that meets the prelude's "
                       "output before every step (Huginn, arXiv 2502.05171, and retrofits of other models)",
            .has_section = false,
            .any_steps = true,
            .exits_select = true,
            .read = [](const ConfigReader& reader, ModelConfig& config) {
                config.ponder.max_steps = reader.size("mean_recurrence", 32, config_limits::steps) - 1;
            }};
}

} // namespace ponderscope

#else
#include "core/ponder/methods/recurrent.h"

namespace ponderscope {

MethodEntry huginn_method() {
    return MethodEntry::of<Recurrent>(MethodKind::huginn);
}

} // namespace ponderscope
#endif
