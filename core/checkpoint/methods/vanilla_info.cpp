// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

void read_vanilla_public(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) {
    if (config.depth.kind != DepthMixing::none) {
        config.ponder.embed_scale = keys.scale_embeds ? EmbedScale::sqrt_d : EmbedScale::none;
    } else if (keys.scale_embeds) {
        reader.notice(NoticeId::config_ignored,
                      "\"scale_embeds\" is ignored: the vanilla method has no scale for embeddings.");
    }
}

} // namespace

MethodInfo vanilla_info() {
    return {.kind = MethodKind::vanilla,
            .summary = "The plain model, one pass a token",
            .public_form = {.steps_key = nullptr, .read = &read_vanilla_public}};
}

} // namespace ponderscope
