// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

PublicForm::Meant ponderlm2_is_meant(const ModelConfig& config, const PublicKeys& keys) {
    return keys.thoughts && (keys.recurrent || config.architecture == Architecture::gpt_neox)
               ? PublicForm::Meant::likely
               : PublicForm::Meant::no;
}

const char* ponderlm2_switch(const ModelConfig& config, const PublicKeys& keys) {
    return config.architecture == Architecture::gpt_neox ? nullptr
                                                         : PublicForm::without_recurrence(config, keys);
}

void read_ponderlm2_public(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) {
    PonderConfig& ponder = config.ponder;
    ponder.interpolation = reader.flag("interpolation", false);
    ponder.interpolation_use_topk = reader.flag("interpolation_use_topk", false);
    ponder.interpolation_topk = reader.size("interpolation_topk", 100, config_limits::vocabulary);
    if (keys.scale_embeds) {
        ponder.embed_scale = ponder.interpolation ? EmbedScale::sqrt_d : EmbedScale::sqrt_2_5_d;
    }
    ponder.jacobi_iterations = reader.json().integer("num_jacobi_iterations", 0, 1'000'000).value_or(3);
}

} // namespace

MethodInfo ponderlm2_info() {
    return {.kind = MethodKind::ponderlm2,
            .summary = "K latent thoughts follow every token; the state of each is the input of the next "
                       "(PonderLM-2, arXiv 2509.23184)",
            .public_form = {.meant = &ponderlm2_is_meant,
                            .switched_off = &ponderlm2_switch,
                            .read = &read_ponderlm2_public,
                            .keys = {"num_jacobi_iterations", "interpolation", "interpolation_use_topk",
                                     "interpolation_topk"}},
            .sees_by_own_rule = true};
}

} // namespace ponderscope
