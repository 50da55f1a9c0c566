// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

PublicForm::Meant ponderlm_reset_is_meant(const ModelConfig& config, const PublicKeys& keys) {
    return PublicForm::thinks(keys) && config.architecture != Architecture::gpt_neox
               ? PublicForm::Meant::perhaps
               : PublicForm::Meant::no;
}

void read_ponderlm_reset_public(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) {
    config.ponder.embed_scale = keys.scale_embeds ? EmbedScale::sqrt_d : EmbedScale::none;
    config.ponder.residual_interpolated_embeds = reader.flag("residual_interpolated_embeds", false);
}

} // namespace

MethodInfo ponderlm_reset_info() {
    return {.kind = MethodKind::ponderlm_reset,
            .summary = "As ponderlm, starting from the embedding again at every step",
            .public_form = {.meant = &ponderlm_reset_is_meant,
                            .switched_off = &PublicForm::without_recurrence,
                            .read = &read_ponderlm_reset_public,
                            .keys = {"residual_interpolated_embeds"}},
            .any_steps = true};
}

} // namespace ponderscope
