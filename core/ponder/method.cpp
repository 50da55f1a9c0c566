// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include "core/base/error.h"
#include "core/checkpoint/method_info.h"
#include "core/kernels/autocast.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace ponderscope {

namespace {

double scale_of(const ModelConfig& config) {
    const auto d = static_cast<double>(config.embed_dim);
    switch (config.ponder.embed_scale) {
    case EmbedScale::sqrt_d:
        return std::sqrt(d);
    case EmbedScale::sqrt_2_5_d:
        return std::sqrt(2.5 * d);
    default:
        return 1.0;
    }
}

} // namespace

Method::Method(const ModelConfig& config)
    : Method(config, config.ponder.method == MethodKind::vanilla ? 0 : config.ponder.max_steps) {}

Method::Method(const ModelConfig& config, std::int64_t max_steps)
    : config_(config.ponder),
      hidden_size_(config.embed_dim),
      vocab_size_(config.vocab_size),
      max_steps_(max_steps),
      embed_scale_(scale_of(config)) {}

Method::Fp32Linear::Fp32Linear(const at::Tensor& weight, const at::Tensor& bias)
    : weight_(weight.to(at::kFloat)), bias_(bias.to(at::kFloat)) {}

at::Tensor Method::Fp32Linear::operator()(const at::Tensor& states, std::int64_t first,
                                          std::int64_t rows) const {
    const Autocast off(states.device().type(), false);
    const std::int64_t count = rows < 0 ? weight_.size(0) : rows;
    return at::linear(states.to(at::kFloat), weight_.narrow(0, first, count), bias_.narrow(0, first, count));
}

bool Method::exits_select() const {
    return method_info(config_.method).exits_select;
}

std::int64_t Method::mixture_flops(std::int64_t top_k) const {
    const std::int64_t mixed = top_k > 0 ? std::min(top_k, vocab_size_) : vocab_size_;
    return 2 * vocab_size_ * hidden_size_ + 2 * mixed * hidden_size_;
}

const MethodEntry& method_entry(MethodKind kind) {
    static const std::vector<MethodEntry> entries{
#define PONDERSCOPE_METHOD(name) name##_method(),
#include "core/checkpoint/methods/methods.def"
#undef PONDERSCOPE_METHOD
    };
    std::string names;
    for (const MethodEntry& entry : entries) {
        if (entry.kind == kind) {
            return entry;
        }
        names += (names.empty() ? "" : ", ") + to_string(entry.kind);
    }
    throw InputError(ErrorId::usage_unsuited, "This build runs the methods " + names + ", not " +
                                                  to_string(kind) + "; choose one with --method.");
}

std::unique_ptr<Method> make_method(const ModelConfig& config, const Parameters& parameters,
                                    const Backbone& backbone) {
    return method_entry(config.ponder.method).make(config, parameters, backbone);
}

std::vector<TensorSpec> method_tensors(const ModelConfig& config) {
    const MethodEntry& entry = method_entry(config.ponder.method);
    return entry.tensors != nullptr ? entry.tensors(config) : std::vector<TensorSpec>();
}

} // namespace ponderscope
