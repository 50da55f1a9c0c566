// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <stdexcept>

namespace ponderscope {

namespace {

bool is_finite(const at::Tensor& tensor) {
    return at::isfinite(tensor).all().item<bool>();
}

} // namespace

AdamW::AdamW(const NamedTensors& parameters, const AdamWConfig& config)
    : config_(config), parameters_(parameters) {
    if (parameters.empty()) {
        throw std::invalid_argument("AdamW needs parameters");
    }
    const auto device = parameters.front().second.device();
    for (const auto& [name, parameter] : parameters) {
        if (parameter.scalar_type() != at::kFloat || parameter.device() != device || !parameter.is_leaf() ||
            !parameter.is_contiguous() || !parameter.requires_grad()) {
            throw std::invalid_argument("AdamW: " + name +
                                        " is not a contiguous fp32 leaf that requires gradients on " +
                                        device.str());
        }
        first_.emplace_back(name, at::zeros_like(parameter.detach()));
        second_.emplace_back(name, at::zeros_like(parameter.detach()));
    }
    zero_gradients();
}

void AdamW::zero_gradients() {
    for (const auto& [name, parameter] : parameters_) {
        at::Tensor& gradient = parameter.mutable_grad();
        gradient = gradient.defined() ? gradient.zero_() : at::zeros_like(parameter.detach());
    }
}

double AdamW::gradient_norm() const {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> norms;
    for (const auto& [name, parameter] : parameters_) {
        norms.push_back(at::linalg_vector_norm(parameter.grad(), 2, {}, false, at::kDouble));
    }
    return at::linalg_vector_norm(at::stack(norms)).item<double>();
}

std::string AdamW::first_bad_gradient() const {
    for (const auto& [name, parameter] : parameters_) {
        if (!is_finite(parameter.grad())) {
            return name;
        }
    }
    return {};
}

std::string AdamW::first_bad_parameter() const {
    for (const auto& [name, parameter] : parameters_) {
        if (!is_finite(parameter.detach())) {
            return name;
        }
    }
    return {};
}

void AdamW::scale_gradients(double factor) {
    const at::NoGradGuard no_grad;
    for (const auto& [name, parameter] : parameters_) {
        parameter.mutable_grad().mul_(factor);
    }
}

void AdamW::step(double learning_rate) {
    const at::NoGradGuard no_grad;
    ++steps_;
    const at::Tensor count = at::full({}, static_cast<double>(steps_), first_.front().second.options());
    for (const bool decays : {true, false}) {
        std::vector<at::Tensor> parameters, gradients, first, second;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const at::Tensor& parameter = parameters_[i].second;
            if ((parameter.dim() >= 2) == decays) {
                parameters.push_back(parameter);
                gradients.push_back(parameter.grad());
                first.push_back(first_[i].second);
                second.push_back(second_[i].second);
            }
        }
        if (!parameters.empty()) {
            at::_fused_adamw_(parameters, gradients, first, second, /*max_exp_avg_sqs=*/{},
                              std::vector<at::Tensor>(parameters.size(), count), learning_rate, config_.beta1,
                              config_.beta2, decays ? config_.weight_decay : 0.0, config_.eps,
                              /*amsgrad=*/false, /*maximize=*/false);
        }
    }
}

} // namespace ponderscope
