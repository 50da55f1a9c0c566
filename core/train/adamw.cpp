// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <stdexcept>

namespace ponderscope {

namespace {

/// Sixteen floats are a cache line and one AVX-512 register: a parameter that starts there is multiplied at
/// full speed.
constexpr std::int64_t alignment = 16;

std::int64_t aligned(std::int64_t elements) {
    return (elements + alignment - 1) / alignment * alignment;
}

} // namespace

AdamW::AdamW(const std::vector<std::pair<std::string, at::Tensor>>& parameters, const AdamWConfig& config)
    : config_(config) {
    if (parameters.empty()) {
        throw std::invalid_argument("AdamW needs parameters");
    }
    const at::NoGradGuard no_grad;
    const auto device = parameters.front().second.device();
    for (const auto& [name, parameter] : parameters) {
        if (parameter.scalar_type() != at::kFloat || parameter.device() != device || !parameter.is_leaf() ||
            !parameter.requires_grad()) {
            throw std::invalid_argument("AdamW: " + name +
                                        " is not an fp32 leaf that requires gradients on " + device.str());
        }
        entries_.push_back({name, parameter, 0});
    }
    const auto decays = [](const Entry& entry) { return entry.parameter.dim() >= 2; };
    std::int64_t size = 0;
    std::int64_t decaying = 0;
    for (const bool decay : {true, false}) {
        for (auto& entry : entries_) {
            if (decays(entry) == decay) {
                entry.offset = size;
                size += aligned(entry.parameter.numel());
            }
        }
        decaying = decay ? size : decaying;
    }

    const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
    parameters_ = at::zeros({size}, options);
    gradients_ = at::zeros({size}, options);
    first_ = at::zeros({size}, options);
    second_ = at::zeros({size}, options);
    for (auto& entry : entries_) {
        const auto count = entry.parameter.numel();
        auto home = parameters_.narrow(0, entry.offset, count).view(entry.parameter.sizes());
        home.copy_(entry.parameter);
        entry.parameter.set_data(home);
        entry.parameter.mutable_grad() =
            gradients_.narrow(0, entry.offset, count).view(entry.parameter.sizes());
    }
    for (const auto& [begin, end, decay] :
         {std::tuple{std::int64_t{0}, decaying, config.weight_decay}, std::tuple{decaying, size, 0.0}}) {
        if (begin < end) {
            const auto length = end - begin;
            halves_.push_back({parameters_.narrow(0, begin, length), gradients_.narrow(0, begin, length),
                               first_.narrow(0, begin, length), second_.narrow(0, begin, length),
                               at::zeros({}, options), decay});
        }
    }
}

void AdamW::zero_gradients() {
    gradients_.zero_();
    // A gradient is accumulated in place only while it is there: a caller that dropped one would otherwise
    // train on nothing, silently.
    for (auto& entry : entries_) {
        if (!entry.parameter.grad().defined() ||
            entry.parameter.grad().data_ptr() != gradients_.data_ptr<float>() + entry.offset) {
            entry.parameter.mutable_grad() =
                gradients_.narrow(0, entry.offset, entry.parameter.numel()).view(entry.parameter.sizes());
        }
    }
}

double AdamW::gradient_norm() const {
    const at::NoGradGuard no_grad;
    return at::linalg_vector_norm(gradients_, 2, {}, false, at::kDouble).item<double>();
}

std::string AdamW::first_bad_gradient() const {
    const at::NoGradGuard no_grad;
    for (const auto& [name, gradient] : views(gradients_)) {
        if (!at::isfinite(gradient).all().item<bool>()) {
            return name;
        }
    }
    return {};
}

std::string AdamW::first_bad_parameter() const {
    const at::NoGradGuard no_grad;
    if (at::isfinite(parameters_.sum()).item<bool>()) {
        return {};
    }
    for (const auto& [name, parameter] : views(parameters_)) {
        if (!at::isfinite(parameter).all().item<bool>()) {
            return name;
        }
    }
    return {};
}

void AdamW::scale_gradients(double factor) {
    const at::NoGradGuard no_grad;
    gradients_.mul_(factor);
}

void AdamW::step(double learning_rate) {
    const at::NoGradGuard no_grad;
    ++steps_;
    for (auto& half : halves_) {
        half.step.fill_(static_cast<double>(steps_));
        const std::vector<at::Tensor> parameters{half.parameters};
        const std::vector<at::Tensor> gradients{half.gradients};
        const std::vector<at::Tensor> first{half.first};
        const std::vector<at::Tensor> second{half.second};
        at::_fused_adamw_(parameters, gradients, first, second, /*max_exp_avg_sqs=*/{}, {half.step},
                          learning_rate, config_.beta1, config_.beta2, half.weight_decay, config_.eps,
                          /*amsgrad=*/false, /*maximize=*/false);
    }
}

std::vector<std::pair<std::string, at::Tensor>> AdamW::views(const at::Tensor& flat) const {
    std::vector<std::pair<std::string, at::Tensor>> result;
    result.reserve(entries_.size());
    for (const auto& entry : entries_) {
        result.emplace_back(
            entry.name, flat.narrow(0, entry.offset, entry.parameter.numel()).view(entry.parameter.sizes()));
    }
    return result;
}

std::vector<std::pair<std::string, at::Tensor>> AdamW::first_moments() const {
    return views(first_);
}

std::vector<std::pair<std::string, at::Tensor>> AdamW::second_moments() const {
    return views(second_);
}

void AdamW::set_steps(std::int64_t steps) {
    steps_ = steps;
}

} // namespace ponderscope
