// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef PONDERSCOPE_METHODS_COMPUTE
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

namespace ponderscope {

namespace {

bool gpt2_recurs(const ModelConfig& config, const PublicKeys& keys) {
    return config.architecture == Architecture::gpt2 && keys.recurrent;
}

PublicForm::Meant meant(const ModelConfig& config, const PublicKeys& keys) {
    const bool said =
        keys.pondering == true || (gpt2_recurs(config, keys) && config.depth.kind == DepthMixing::none);
    return said ? PublicForm::Meant::surely : PublicForm::Meant::no;
}

const char* switched_off(const ModelConfig& config, const PublicKeys& keys) {
    return keys.pondering == false && !gpt2_recurs(config, keys) ? "ponderinglm" : nullptr;
}

void read_public(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) {
    if (keys.pondering == true && config.architecture == Architecture::gpt2 && !keys.recurrent) {
        reader.notice("\"recurrent_model\" is absent, with which the authors' GPT-2 code would run this "
                      "as a plain GPT-2; here \"ponderinglm\" decides and it ponders.");
    }
    PonderConfig& ponder = config.ponder;
    ponder.multiply_start = reader.flag("mutiply_pondering_steps", false);
    ponder.embed_scale = keys.scale_embeds ? EmbedScale::sqrt_d : EmbedScale::none;
    const double temperature = reader.positive("softmax_temperature", 1.0);
    if (config.architecture != Architecture::gpt_neox) {
        ponder.temperature = temperature;
    } else if (temperature != 1.0) {
        reader.notice("\"softmax_temperature\" is ignored: the GPT-NeoX code has none.");
    }
}

} // namespace

MethodInfo ponderlm_info() {
    return {.kind = MethodKind::ponderlm,
            .summary = "Adds the expected embedding of the read-out to the input and runs again "
                       "(PonderLM, arXiv 2505.20674)",
            .section = {section_keys::multiply_start, section_keys::top_k},
            .public_form = {.meant = &meant,
                            .switched_off = &switched_off,
                            .steps = &PublicKeys::pondering_steps,
                            .steps_key = "pondering_steps",
                            .read = &read_public,
                            .keys = {"ponderinglm", "pondering_steps", "softmax_temperature",
                                     "mutiply_pondering_steps"}},
            .any_steps = true};
}

} // namespace ponderscope

#else
#include "core/ponder/method.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

/// PonderLM (arXiv 2505.20674): K times, the expected embedding of the next token is added to the input and
/// the stack runs again.
///   E^0 = c·emb(x), times K with `multiply_start`;   E^{k+1} = E^k + c·Σ_v softmax(head(h^k) /
///   temperature)_v · W_emb[v]
class PonderLm final : public Method {
public:
    explicit PonderLm(const ModelConfig& config);
    [[nodiscard]] at::Tensor first_input(const at::Tensor& embedded, const at::Tensor& start) const override;
    [[nodiscard]] std::optional<MixtureWish> mixture() const override;
    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision& decision,
                                        const at::Tensor& expected) const override;
    [[nodiscard]] std::int64_t input_flops() const override;
};

PonderLm::PonderLm(const ModelConfig& config) : Method(config) {}

at::Tensor PonderLm::first_input(const at::Tensor& embedded, const at::Tensor&) const {
    // With K = 0 this zeroes the input, as the authors' code does.
    return config_.multiply_start ? embedded * static_cast<double>(max_steps()) : embedded;
}

std::optional<MixtureWish> PonderLm::mixture() const {
    return MixtureWish{config_.temperature, config_.top_k};
}

at::Tensor PonderLm::next_input(const Slots& slots, const Decision&, const at::Tensor& expected) const {
    return slots.input + expected;
}

std::int64_t PonderLm::input_flops() const {
    return mixture_flops(config_.top_k);
}

} // namespace

MethodEntry ponderlm_method() {
    return MethodEntry::of<PonderLm>(MethodKind::ponderlm);
}

} // namespace ponderscope

#endif
