// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include "core/base/error.h"
#include "core/ponder/adaponderlm.h"
#include "core/ponder/adaptive_latent_cot.h"
#include "core/ponder/ponderlm.h"

#include <ATen/ATen.h>

#include <cmath>

namespace ponderscope {

namespace {

/// The plain model: one slot a token.
class Vanilla final : public Method {
public:
    explicit Vanilla(const ModelConfig& config) : Method(config) {}
};

double scale_of(const ModelConfig& config) {
    if (config.ponder.method == MethodKind::vanilla) {
        return 1.0; // `scale_embeds` counts only in a method that runs (methods.md section 1)
    }
    const auto d = static_cast<double>(config.hidden_size);
    switch (config.ponder.embed_scale) {
    case EmbedScale::sqrt_d:
        return std::sqrt(d);
    case EmbedScale::sqrt_2_5_d:
        return std::sqrt(2.5 * d);
    default:
        return 1.0;
    }
}

[[noreturn]] void refuse(MethodKind kind) {
    throw InputError(
        "This build runs the methods vanilla, ponderlm, adaponderlm and adaptive_latent_cot, not " +
        to_string(kind) + ".");
}

} // namespace

Method::Method(const ModelConfig& config)
    : config_(config.ponder),
      hidden_size_(config.hidden_size),
      vocab_size_(config.vocab_size),
      max_steps_(config.ponder.method == MethodKind::vanilla ? 0 : config.ponder.max_steps),
      embed_scale_(scale_of(config)) {}

at::Tensor Method::next_input(const Slots& slots, const Decision&, const at::Tensor&) const {
    return slots.hidden;
}

Decision Method::decide(const Slots&) const {
    return {};
}

std::int64_t Method::decision_flops(std::int64_t) const {
    return 0;
}

std::unique_ptr<Method> make_method(const ModelConfig& config, const Parameters& parameters) {
    switch (config.ponder.method) {
    case MethodKind::vanilla:
        return std::make_unique<Vanilla>(config);
    case MethodKind::ponderlm:
        return std::make_unique<PonderLm>(config);
    case MethodKind::adaponderlm:
        return std::make_unique<AdaPonderLm>(config, parameters);
    case MethodKind::adaptive_latent_cot:
        return std::make_unique<AdaptiveLatentCot>(config, parameters);
    default:
        refuse(config.ponder.method);
    }
}

std::vector<TensorSpec> method_tensors(const ModelConfig& config) {
    switch (config.ponder.method) {
    case MethodKind::vanilla:
    case MethodKind::ponderlm:
        return {};
    case MethodKind::adaponderlm:
        return AdaPonderLm::tensors(config);
    case MethodKind::adaptive_latent_cot:
        return AdaptiveLatentCot::tensors(config);
    default:
        refuse(config.ponder.method);
    }
}

} // namespace ponderscope
