// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

MethodInfo hrm_text_info() {
    return {
        .kind = MethodKind::hrm_text,
        .summary =
            "A step is a cycle: a low stack runs several times, then a high stack once (HRM-Text, Sapient)",
        .has_section = false,
        .any_steps = true,
        .exits_select = true,
        .architecture = Architecture::hrm_text,
        .read =
            [](const ConfigReader& reader, ModelConfig& config) {
                config.ponder.max_steps = reader.size("H_cycles", 2, config_limits::steps) - 1;
            },
        .untrained = "whose authors train it with gradients of the last passes alone"};
}

} // namespace ponderscope
