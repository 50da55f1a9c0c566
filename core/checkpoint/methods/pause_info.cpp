// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

PublicForm::Meant pause_is_meant(const ModelConfig& config, const PublicKeys& keys) {
    return keys.thoughts && (keys.recurrent || config.architecture == Architecture::gpt_neox)
               ? PublicForm::Meant::perhaps
               : PublicForm::Meant::no;
}

void read_pause_public(const ConfigReader&, ModelConfig& config, const PublicKeys& keys) {
    config.ponder.embed_scale = keys.scale_embeds || config.architecture != Architecture::gpt_neox
                                    ? EmbedScale::sqrt_d
                                    : EmbedScale::none;
}

void read_pause_token(const ConfigReader& reader, ModelConfig& config) {
    std::int64_t& id = config.ponder.pause_token_id;
    id = reader.json().integer("pause_token_id", 0, config_limits::vocabulary).value_or(id);
    if (config.candidate_methods.size() == 1 && id >= config.vocab_size) {
        reader.json().fail("pause_token_id", "an id below vocab_size " + std::to_string(config.vocab_size) +
                                                 " (an absent key means 50288)");
    }
}

} // namespace

MethodInfo pause_info() {
    return {.kind = MethodKind::pause,
            .summary = "K pause tokens follow every token, and the last one is read out (arXiv 2310.02226)",
            .read_beside = &read_pause_token,
            .public_form = {.meant = &pause_is_meant, .read = &read_pause_public, .keys = {"pause_token_id"}},
            .sees_by_own_rule = true};
}

} // namespace ponderscope
