// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef PONDERSCOPE_METHODS_COMPUTE
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

PublicForm::Meant meant(const ModelConfig& config, const PublicKeys& keys) {
    return keys.thoughts && (keys.recurrent || config.architecture == Architecture::gpt_neox)
               ? PublicForm::Meant::likely
               : PublicForm::Meant::no;
}

const char* switched_off(const ModelConfig& config, const PublicKeys& keys) {
    return config.architecture == Architecture::gpt_neox ? nullptr
                                                         : PublicForm::without_recurrence(config, keys);
}

void read_public(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) {
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
            .summary = "K latent thoughts follow every token, each the state of the one before "
                       "(PonderLM-2, arXiv 2509.23184)",
            .public_form = {.meant = &meant,
                            .switched_off = &switched_off,
                            .read = &read_public,
                            .keys = {"num_jacobi_iterations", "interpolation", "interpolation_use_topk",
                                     "interpolation_topk"}},
            .sees_by_own_rule = true};
}

} // namespace ponderscope

#else
#include "core/ponder/method.h"

#include <algorithm>

namespace ponderscope {

namespace {

/// PonderLM-2 (arXiv 2509.23184, methods.md section 4): K latent thoughts between a token and the next, each
/// reading the last state of the one before; logits from the last.
///   slot (t, 0) reads c·emb(x_t);   slot (t, k+1) reads h^k_t, or with `interpolation` c times its expected
///   embedding, over the `interpolation_topk` largest logits where `interpolation_use_topk` says so
class PonderLm2 final : public Method {
public:
    explicit PonderLm2(const ModelConfig& config) : Method(config) {}

    [[nodiscard]] VisibilityRule visibility() const override { return VisibilityRule::interleaved; }

    [[nodiscard]] std::optional<MixtureWish> mixture() const override {
        return config_.interpolation ? std::optional(MixtureWish{1.0, top_k()}) : std::nullopt;
    }

    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision&,
                                        const at::Tensor& expected) const override {
        return config_.interpolation ? expected : slots.hidden;
    }

    [[nodiscard]] std::int64_t input_flops() const override {
        return config_.interpolation ? mixture_flops(top_k()) : 0;
    }

private:
    [[nodiscard]] std::int64_t top_k() const {
        return config_.interpolation_use_topk ? std::min(config_.interpolation_topk, vocab_size_) : 0;
    }
};

} // namespace

MethodEntry ponderlm2_method() {
    return MethodEntry::of<PonderLm2>(MethodKind::ponderlm2);
}

} // namespace ponderscope

#endif
