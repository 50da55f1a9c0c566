// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/experts.h"

#include "core/kernels/autocast.h"
#include "core/model/blocks.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <tuple>

namespace ponderscope {

Experts Experts::declare(TensorBuilder& builder, const std::string& mlp, const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t m = config.experts.intermediate_size;
    const std::int64_t count = config.experts.count;
    // multiplies = false: a row runs only its chosen experts, which Backbone counts separately.
    const auto weight = [&](const std::string& name, std::vector<std::int64_t> shape,
                            const std::string& stack = {}) {
        TensorSpec spec{mlp + name, std::move(shape)};
        spec.stack = stack;
        spec.multiplies = false;
        return builder.add(std::move(spec));
    };
    Experts experts;
    experts.config_ = config.experts;
    experts.activation_ = config.activation;
    if (config.experts.clamped) {
        experts.router_ = builder.linear(mlp + "router", count, d, true);
        experts.gate_.all = weight("experts.gate_up_proj", {count, d, 2 * m});
        experts.gate_.bias = weight("experts.gate_up_proj_bias", {count, 2 * m});
        experts.down_.all = weight("experts.down_proj", {count, m, d});
        experts.down_.bias = weight("experts.down_proj_bias", {count, d});
        return experts;
    }
    experts.router_ = builder.linear(mlp + "gate", count, d);
    for (const auto& [projection, name, out, in] :
         {std::tuple{&experts.gate_, "gate_proj", m, d}, std::tuple{&experts.up_, "up_proj", m, d},
          std::tuple{&experts.down_, "down_proj", d, m}}) {
        const std::string stack = mlp + name;
        for (std::int64_t e = 0; e < count; ++e) {
            projection->each.push_back(
                weight("experts." + std::to_string(e) + "." + name + ".weight", {out, in}, stack));
        }
        if (const at::Tensor all = builder.stack(stack); all.defined()) {
            projection->all = all.transpose(1, 2);
        }
    }
    return experts;
}

/// Routes in fp32 for every dtype of the run, because rounding could swap close probabilities. gpt_oss
/// rounds, as in its authors' code.
Experts::Routing Experts::route(const at::Tensor& x, std::int64_t layer, const Pass& pass) const {
    const Autocast exact(x.device().type(), false);
    const at::ScalarType type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor bias = router_.bias.defined() ? router_.bias.to(type) : router_.bias;
    at::Tensor scores = blocks::linear(x.to(type), {router_.weight.to(type), bias});
    if (config_.clamped) {
        scores = scores.to(router_.weight.scalar_type()).to(type);
    }
    const at::Tensor probabilities = at::softmax(scores, -1);
    // A stable sort: of equal scores, the lower index comes first.
    const at::Tensor order = std::get<1>(at::sort(scores.detach(), /*stable=*/true, -1, /*descending=*/true));
    const at::Tensor chosen = order.narrow(1, 0, config_.chosen).contiguous();
    at::Tensor weights = probabilities.gather(1, chosen);
    if (config_.renormed) {
        weights = weights / weights.sum(1, true);
    }
    pass.tap("router_probabilities", probabilities, layer);
    pass.tap("router_experts", chosen, layer);
    pass.tap("router_weights", weights, layer);
    return {chosen, weights};
}

at::Tensor Experts::project(const at::Tensor& rows, const Projection& weights, const Groups& groups) {
    const bool stacked = weights.each.empty();
    if (groups.counts.empty()) {
        const at::Tensor out = at::_grouped_mm(rows, weights.all, groups.ends);
        return weights.bias.defined() ? out + weights.bias.index_select(0, groups.experts) : out;
    }
    std::vector<at::Tensor> parts;
    std::int64_t begin = 0;
    for (std::size_t e = 0; e < groups.counts.size(); ++e) {
        if (const std::int64_t count = groups.counts[e]; count > 0) {
            const at::Tensor part = rows.narrow(0, begin, count);
            const auto place = static_cast<std::int64_t>(e);
            parts.push_back(!stacked ? at::linear(part, weights.each[e])
                            : weights.bias.defined()
                                ? at::addmm(weights.bias[place], part, weights.all[place])
                                : at::mm(part, weights.all[place]));
            begin += count;
        }
    }
    return at::cat(parts);
}

/// The input of the down projection.
at::Tensor Experts::inner(const at::Tensor& rows, const Groups& groups) const {
    if (!config_.clamped) {
        const at::Tensor gate = blocks::activate(project(rows, gate_, groups), activation_);
        return gate * project(rows, up_, groups);
    }
    const at::Tensor both = project(rows, gate_, groups).unflatten(1, {-1, 2});
    const at::Tensor gate = both.select(2, 0).clamp_max(config_.limit);
    const at::Tensor up = both.select(2, 1).clamp(-config_.limit, config_.limit);
    return (up + 1) * (gate * at::sigmoid(gate * config_.alpha));
}

/// Whether a GPU's grouped product can run. It needs rows of whole 16 bytes, but no counts on the host.
bool Experts::groups_on_device(const at::Tensor& x) const {
    const auto bytes = static_cast<std::int64_t>(x.element_size());
    return !x.is_cpu() && !at::GradMode::is_enabled() && down_.all.defined() && gate_.all.defined() &&
           x.scalar_type() != at::kDouble && x.size(1) * bytes % 16 == 0 &&
           config_.intermediate_size * bytes % 16 == 0;
}

at::Tensor Experts::run(const at::Tensor& x, std::int64_t layer, const Pass& pass) const {
    const std::int64_t n = x.size(0);
    const std::int64_t k = config_.chosen;
    if (n == 0) {
        return x;
    }
    const Routing routing = route(x, layer, pass);
    const auto [experts, order] =
        at::sort(routing.experts.view({-1}), /*stable=*/true, 0, /*descending=*/false);
    const at::Tensor numbers = at::arange(config_.count, experts.options());
    Groups groups{experts, at::searchsorted(experts, numbers, /*out_int32=*/true, /*right=*/true), {}};
    if (!groups_on_device(x)) {
        const at::Tensor ends = groups.ends.to(at::kCPU);
        std::int64_t begin = 0;
        for (std::int64_t e = 0; e < config_.count; ++e) {
            const std::int64_t end = ends.const_data_ptr<std::int32_t>()[e];
            groups.counts.push_back(end - begin);
            begin = end;
        }
    }
    const at::Tensor rows = x.index_select(0, order.div(k, "floor"));
    const at::Tensor outputs = project(inner(rows, groups), down_, groups);
    // Restore the order of rows and choices, so that other rows do not change a row's sum.
    const at::Tensor place =
        at::empty_like(order).index_copy_(0, order, at::arange(order.size(0), order.options()));
    const at::Tensor chosen = outputs.index_select(0, place).view({n, k, -1});
    const at::Tensor weights = routing.weights.to(chosen.scalar_type()).unsqueeze(2);
    return (chosen * weights).sum(1).to(x.scalar_type());
}

} // namespace ponderscope
