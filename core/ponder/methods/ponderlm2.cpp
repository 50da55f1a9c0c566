// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include <algorithm>

namespace ponderscope {

namespace {

/// PonderLM-2 (arXiv 2509.23184, methods.md section 4): K latent thoughts follow each token. Each reads the
/// state of the previous slot. The last gives the logits.
///   slot (t, 0) reads c·emb(x_t);   slot (t, k+1) reads h^k_t, or with `interpolation` c times its expected
///   embedding; with `interpolation_use_topk`, over the `interpolation_topk` largest logits only
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
