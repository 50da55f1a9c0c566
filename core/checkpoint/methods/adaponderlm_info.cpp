// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/method_info.h"

namespace ponderscope {

MethodInfo adaponderlm_info() {
    return {.kind = MethodKind::adaponderlm,
            .summary =
                "As ponderlm, with a gate at each step that stops tokens (AdaPonderLM, arXiv 2603.01914)",
            .own_rule = {"gate", OwnRule::Form::value_at_k, OwnRule::Stops::below},
            .section = {section_keys::threshold, section_keys::multiply_start, section_keys::top_k},
            .penalty = {"lambda", "k_max", "ramp_start", "ramp_end"}};
}

} // namespace ponderscope
