// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

PublicForm::Meant looped_is_meant(const ModelConfig&, const PublicKeys& keys) {
    return PublicForm::thinks(keys) ? PublicForm::Meant::perhaps : PublicForm::Meant::no;
}

void read_looped_public(const ConfigReader&, ModelConfig& config, const PublicKeys&) {
    config.ponder.embed_scale = EmbedScale::sqrt_2_5_d;
}

} // namespace

MethodInfo looped_info() {
    return {.kind = MethodKind::looped,
            .summary = "The stack runs K + 1 times over its own output; the final norm comes once, or "
                       "after every pass (Nanbeige)",
            .public_form = {.meant = &looped_is_meant,
                            .switched_off = &PublicForm::without_recurrence,
                            .read = &read_looped_public},
            .any_steps = true};
}

} // namespace ponderscope
