// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/method_info.h"

namespace ponderscope {

MethodInfo ponderlm3_info() {
    return {.kind = MethodKind::ponderlm3,
            .summary = "As ponderlm2, with a router that gives every token its number of steps "
                       "(PonderLM-3, arXiv 2603.02023)",
            .own_rule = {"gate", OwnRule::Form::value_at_k, OwnRule::Stops::below},
            .section = {section_keys::threshold, section_keys::remainder},
            .sees_by_own_rule = true,
            .penalty = {"lambda"}};
}

} // namespace ponderscope
