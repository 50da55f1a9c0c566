// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef PONDERSCOPE_METHODS_COMPUTE
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

PublicForm::Meant meant(const ModelConfig& config, const PublicKeys& keys) {
    return keys.thoughts && (keys.recurrent || config.architecture == Architecture::gpt_neox)
               ? PublicForm::Meant::perhaps
               : PublicForm::Meant::no;
}

void read_public(const ConfigReader&, ModelConfig& config, const PublicKeys& keys) {
    config.ponder.embed_scale = keys.scale_embeds || config.architecture != Architecture::gpt_neox
                                    ? EmbedScale::sqrt_d
                                    : EmbedScale::none;
}

void read_token(const ConfigReader& reader, ModelConfig& config) {
    std::int64_t& id = config.ponder.pause_token_id;
    id = reader.json().integer("pause_token_id", 0, config_limits::vocabulary).value_or(id);
    if (config.candidate_methods.size() == 1 && id >= config.vocab_size) {
        reader.json().fail("pause_token_id", "an id below vocab_size, " + std::to_string(config.vocab_size) +
                                                 ", (50288 where the key is absent)");
    }
}

} // namespace

MethodInfo pause_info() {
    return {.kind = MethodKind::pause,
            .summary = "K pause tokens follow every token, and it is read out at the last (arXiv "
                       "2310.02226)",
            .read_beside = &read_token,
            .public_form = {.meant = &meant, .read = &read_public, .keys = {"pause_token_id"}},
            .sees_by_own_rule = true};
}

} // namespace ponderscope

#else
#include "core/ponder/method.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

/// Pause tokens (methods.md section 4): after every token K tokens more, all with its position, and the
/// logits from the last. What enters them is known beforehand, so that one pass computes everything exactly.
class Pause final : public Method {
public:
    Pause(const ModelConfig& config, const Parameters&, const Backbone& backbone)
        : Method(config), backbone_(backbone) {}

    [[nodiscard]] VisibilityRule visibility() const override { return VisibilityRule::interleaved; }
    [[nodiscard]] bool knows_inputs() const override { return true; }

    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision&,
                                        const at::Tensor&) const override {
        const at::Tensor id = at::full({1}, config_.pause_token_id,
                                       slots.input.options().dtype(at::kLong).requires_grad(false));
        return (backbone_.embed(id) * embed_scale()).expand_as(slots.input);
    }

private:
    const Backbone& backbone_;
};

} // namespace

MethodEntry pause_method() {
    return MethodEntry::of<Pause>(MethodKind::pause);
}

} // namespace ponderscope

#endif
