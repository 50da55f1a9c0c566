// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

bool gpt2_recurs(const ModelConfig& config, const PublicKeys& keys) {
    return config.architecture == Architecture::gpt2 && keys.recurrent;
}

PublicForm::Meant ponderlm_is_meant(const ModelConfig& config, const PublicKeys& keys) {
    const bool said =
        keys.pondering == true || (gpt2_recurs(config, keys) && config.depth.kind == DepthMixing::none);
    return said ? PublicForm::Meant::surely : PublicForm::Meant::no;
}

const char* ponderlm_switch(const ModelConfig& config, const PublicKeys& keys) {
    return keys.pondering == false && !gpt2_recurs(config, keys) ? "ponderinglm" : nullptr;
}

void read_ponderlm_public(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) {
    if (keys.pondering == true && config.architecture == Architecture::gpt2 && !keys.recurrent) {
        reader.notice(NoticeId::config_assumed,
                      "\"ponderinglm\" is true, so the model ponders. The authors' GPT-2 code would run it "
                      "as a plain GPT-2, because \"recurrent_model\" is not true.");
    }
    PonderConfig& ponder = config.ponder;
    ponder.multiply_start = reader.flag("mutiply_pondering_steps", false);
    ponder.embed_scale = keys.scale_embeds ? EmbedScale::sqrt_d : EmbedScale::none;
    const double temperature = reader.positive("softmax_temperature", 1.0);
    if (config.architecture != Architecture::gpt_neox) {
        ponder.temperature = temperature;
    } else if (temperature != 1.0) {
        reader.notice(NoticeId::config_ignored,
                      "\"softmax_temperature\" is ignored: the authors' GPT-NeoX code has no temperature.");
    }
}

} // namespace

MethodInfo ponderlm_info() {
    return {.kind = MethodKind::ponderlm,
            .summary = "Adds the expected embedding of the read-out to the input and runs again "
                       "(PonderLM, arXiv 2505.20674)",
            .section = {section_keys::multiply_start, section_keys::top_k},
            .public_form = {.meant = &ponderlm_is_meant,
                            .switched_off = &ponderlm_switch,
                            .steps = &PublicKeys::pondering_steps,
                            .steps_key = "pondering_steps",
                            .read = &read_ponderlm_public,
                            .keys = {"ponderinglm", "pondering_steps", "softmax_temperature",
                                     "mutiply_pondering_steps"}},
            .any_steps = true};
}

} // namespace ponderscope
