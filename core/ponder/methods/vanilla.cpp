// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef PONDERSCOPE_METHODS_COMPUTE
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

void read_public(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) {
    if (config.depth.kind != DepthMixing::none) {
        config.ponder.embed_scale = keys.scale_embeds ? EmbedScale::sqrt_d : EmbedScale::none;
    } else if (keys.scale_embeds) {
        reader.notice("\"scale_embeds\" is ignored: no method that runs says by what.");
    }
}

} // namespace

MethodInfo vanilla_info() {
    return {.kind = MethodKind::vanilla,
            .summary = "One slot a token: the plain model",
            .public_form = {.steps_key = nullptr, .read = &read_public}};
}

} // namespace ponderscope

#else
#include "core/ponder/method.h"

namespace ponderscope {

namespace {

/// The plain model: one slot a token.
class Vanilla final : public Method {
public:
    explicit Vanilla(const ModelConfig& config) : Method(config) {}
};

} // namespace

MethodEntry vanilla_method() {
    return MethodEntry::of<Vanilla>(MethodKind::vanilla);
}

} // namespace ponderscope

#endif
