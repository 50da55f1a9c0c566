// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

PublicForm::Meant ponderlm_hidden_is_meant(const ModelConfig& config, const PublicKeys& keys) {
    return PublicForm::thinks(keys) && config.architecture == Architecture::gpt_neox
               ? PublicForm::Meant::perhaps
               : PublicForm::Meant::no;
}

void read_ponderlm_hidden_public(const ConfigReader&, ModelConfig&, const PublicKeys&) {
} // no scale; the config cannot change this

} // namespace

MethodInfo ponderlm_hidden_info() {
    return {.kind = MethodKind::ponderlm_hidden,
            .summary = "Adds the last state itself to the input and runs again",
            .public_form = {.meant = &ponderlm_hidden_is_meant,
                            .switched_off = &PublicForm::without_recurrence,
                            .read = &read_ponderlm_hidden_public},
            .any_steps = true};
}

} // namespace ponderscope
