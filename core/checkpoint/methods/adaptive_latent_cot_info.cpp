// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/method_info.h"

namespace ponderscope {

MethodInfo adaptive_latent_cot_info() {
    return {.kind = MethodKind::adaptive_latent_cot,
            .summary = "Latent steps that see earlier tokens' latent steps, with a router after each step "
                       "(adaptive latent CoT, arXiv 2602.08220)",
            .own_rule = {"gate", OwnRule::Form::product_up_to_k, OwnRule::Stops::below},
            .section = {section_keys::threshold, section_keys::remainder},
            .sees_by_own_rule = true,
            .penalty = {"lambda", "beta"}};
}

} // namespace ponderscope
