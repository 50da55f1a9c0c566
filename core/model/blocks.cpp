// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/blocks.h"

#include "core/model/cuda_library.h"
#include "core/model/few_rows.h"
#include "core/model/fused_linear.h"
#include "core/model/norm_rows.h"
#include "core/model/recompute.h"
#include "core/model/rope.h"
#include "core/model/unit_linear.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

namespace ponderscope::blocks {

namespace {

/// Rows of an MLP's inner activation that are alive at once: few enough to stay in the cache between the two
/// products, enough for the products to run at full speed.
constexpr std::int64_t mlp_rows = 1024;

void activate_in_place(at::Tensor& x, Activation activation) {
    switch (activation) {
    case Activation::gelu:
        at::gelu_(x);
        break;
    case Activation::gelu_tanh:
        at::gelu_(x, "tanh");
        break;
    case Activation::relu:
        at::relu_(x);
        break;
    case Activation::silu:
        at::silu_(x);
        break;
    default:
        x.copy_(activate(x, activation));
    }
}

/// A few rows of many sequences, not the whole text of one: how that is summed up shall not depend on how
/// many texts go together.
bool steps_alone(const at::Tensor& x, const Linear& weights, const Pass& pass) {
    const auto& texts = pass.visibility.causal;
    return few_rows(x, weights.weight) &&
           std::none_of(texts.begin(), texts.end(), [](const auto& text) { return text.length > 1; });
}

void linear_out(at::Tensor& out, const at::Tensor& x, const Linear& weights, const Pass& pass) {
    if (steps_alone(x, weights, pass)) {
        multiply_few_rows(out, x, weights.weight, weights.bias, false);
    } else if (unit_multiplies(x, weights.weight)) {
        unit_linear(out, x, weights.weight, weights.bias, *pass.workspace);
    } else if (weights.bias.defined()) {
        at::addmm_out(out, weights.bias, x, weights.weight.t());
    } else {
        at::mm_out(out, x, weights.weight.t());
    }
}

/// act(x W^T + b). The library computes the last few elements of a tensor by other instructions than the
/// rest: behind the rows there are some that nobody wants, so that a row is the same wherever it stands.
at::Tensor activated_product(const at::Tensor& x, const Linear& weights, Activation activation,
                             const Pass& pass, Workspace::Use use) {
    constexpr std::int64_t together = 64;
    const std::int64_t wanted = x.size(0) * weights.weight.size(0);
    at::Tensor all = pass.workspace->take(use, {(wanted + together - 1) / together * together}, x.options());
    at::Tensor rows = all.narrow(0, 0, wanted).view({x.size(0), weights.weight.size(0)});
    if (unit_multiplies(x, weights.weight) && fused::has(activation)) {
        unit_linear(rows, x, weights.weight, weights.bias, *pass.workspace, {activation});
        return rows;
    }
    linear_out(rows, x, weights, pass);
    activate_in_place(all, activation);
    return rows;
}

void add_product(at::Tensor& out, const at::Tensor& x, const Linear& weights, const Pass& pass) {
    if (steps_alone(x, weights, pass)) {
        multiply_few_rows(out, x, weights.weight, weights.bias, true);
        return;
    }
    if (unit_multiplies(x, weights.weight)) {
        unit_linear(out, x, weights.weight, weights.bias, *pass.workspace, {Activation::linear, out});
        return;
    }
    if (weights.bias.defined()) {
        out.add_(weights.bias);
    }
    out.addmm_(x, weights.weight.t());
}

/// residual + down(inner(x)), some rows at a time; the residual is overwritten and returned.
template <typename Inner>
at::Tensor add_rows(const at::Tensor& residual, const at::Tensor& x, const Linear& down, const Pass& pass,
                    const Inner& inner) {
    at::Tensor out = residual;
    for (std::int64_t row = 0; row < x.size(0); row += mlp_rows) {
        const std::int64_t count = std::min(mlp_rows, x.size(0) - row);
        const at::Tensor activated = inner(x.narrow(0, row, count));
        at::Tensor target = out.narrow(0, row, count);
        if (fused::suits(activated, down.weight)) {
            const at::Tensor sum = fused::linear_add(activated, down.weight, down.bias, target);
            if (count == x.size(0)) {
                return sum;
            }
            target.copy_(sum);
            continue;
        }
        add_product(target, activated, down, pass);
    }
    return out;
}

/// Each of the heads of \p x [n, heads, d_h] by itself.
at::Tensor normalise_heads(const at::Tensor& x, const Norm& norm, const Pass& pass, Workspace::Use use) {
    return normalise(x.reshape({-1, x.size(2)}), norm, pass, use).view(x.sizes());
}

/// With a graph, or under autocast.
at::Tensor plain_linear(const at::Tensor& x, const Linear& weights) {
    if (!at::autocast::is_autocast_enabled(at::kCPU) && fused::suits(x, weights.weight, /*recurring=*/true)) {
        return c10::GradMode::is_enabled() ? fused::linear_with_gradient(x, weights.weight, weights.bias)
                                           : fused::linear(x, weights.weight, weights.bias);
    }
    return at::linear(x, weights.weight,
                      weights.bias.defined() ? std::optional<at::Tensor>(weights.bias) : std::nullopt);
}

} // namespace

Linear Linear::from(const Parameters& parameters, const std::string& prefix) {
    return {parameters.at(prefix + ".weight"), parameters.find(prefix + ".bias")};
}

Norm Norm::from(const Parameters& parameters, const std::string& prefix, const ModelConfig& config) {
    return {config.norm, parameters.find(prefix + ".weight"), parameters.find(prefix + ".bias"),
            config.norm_eps};
}

Linear Linear::part(std::int64_t first, std::int64_t count) const {
    if (!weight.defined()) {
        return {};
    }
    return {weight.narrow(0, first, count), bias.defined() ? bias.narrow(0, first, count) : bias};
}

namespace {

/// The norm's factor in fp32 (fp64 for fp64), or as it is stored.
at::Tensor factor_of(const Norm& norm) {
    if (!norm.one_plus) {
        return norm.weight;
    }
    return norm.weight.to(norm.weight.scalar_type() == at::kDouble ? at::kDouble : at::kFloat) + 1;
}

} // namespace

at::Tensor linear(const at::Tensor& x, const Linear& weights, const Pass& pass, Workspace::Use use) {
    if (pass.workspace == nullptr) {
        return plain_linear(x, weights);
    }
    if (fused::suits(x, weights.weight)) {
        return fused::linear(x, weights.weight, weights.bias);
    }
    at::Tensor out = pass.workspace->take(use, {x.size(0), weights.weight.size(0)}, x.options());
    linear_out(out, x, weights, pass);
    return out;
}

at::Tensor add_linear(const at::Tensor& residual, const at::Tensor& x, const Linear& weights,
                      const Pass& pass) {
    if (pass.workspace == nullptr) {
        return residual + plain_linear(x, weights);
    }
    if (fused::suits(x, weights.weight)) {
        return fused::linear_add(x, weights.weight, weights.bias, residual);
    }
    at::Tensor out = residual;
    add_product(out, x, weights, pass);
    return out;
}

at::Tensor add(const at::Tensor& residual, const at::Tensor& y, const Pass& pass) {
    if (pass.workspace == nullptr) {
        return residual + y;
    }
    at::Tensor out = residual;
    return out.add_(y);
}

at::Tensor normalise(const at::Tensor& x, const Norm& norm) {
    const auto optional = [](const at::Tensor& t) {
        return t.defined() ? std::optional<at::Tensor>(t) : std::nullopt;
    };
    if (norm.kind == NormKind::layer_norm) {
        return at::layer_norm(x, {x.size(-1)}, optional(norm.weight), optional(norm.bias), norm.eps);
    }
    const at::Tensor factor = factor_of(norm);
    // One kernel of the library's on a GPU; on the CPU it is several operations, as are these.
    if (!x.is_cpu() && norm.kind == NormKind::rms_norm &&
        (!factor.defined() || factor.scalar_type() == x.scalar_type())) {
        return at::rms_norm(x, {x.size(-1)}, optional(factor), norm.eps);
    }
    const at::ScalarType compute = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor wide = x.to(compute);
    const at::Tensor squares = wide.square();
    const at::Tensor power = norm.kind == NormKind::unit ? squares.sum(-1, true) : squares.mean(-1, true);
    const at::Tensor scaled = wide * at::rsqrt(power + norm.eps);
    return (factor.defined() ? scaled * factor.to(compute) : scaled).to(x.scalar_type());
}

at::Tensor normalise(const at::Tensor& x, const Norm& norm, const Pass& pass, Workspace::Use use) {
    if (pass.workspace == nullptr || x.scalar_type() != at::kFloat) {
        return normalise(x, norm);
    }
    at::Tensor out = pass.workspace->take(use, x.sizes(), x.options());
    norm_rows(out, x, norm.kind, factor_of(norm), norm.bias, norm.eps);
    return out;
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
    switch (activation) {
    case Activation::gelu:
        return at::gelu(x);
    case Activation::gelu_tanh:
        return at::gelu(x, "tanh");
    case Activation::quick_gelu:
        return x * at::sigmoid(1.702 * x);
    case Activation::relu:
        return at::relu(x);
    case Activation::relu_squared:
        return at::relu(x).square();
    case Activation::half_relu_squared:
        return at::relu(x).square() * 0.5;
    case Activation::silu:
        return at::silu(x);
    case Activation::sigmoid:
        return at::sigmoid(x);
    case Activation::tanh:
        return at::tanh(x);
    case Activation::mish:
        return at::mish(x);
    case Activation::linear:
        return x;
    }
    return x;
}

namespace {

/// The differentiable MLP: function(x, its linear layers), its inside kept for the backward pass or, where
/// the pass says so, computed again then. It holds most of what a layer keeps.
template <typename Function>
at::Tensor mlp(const at::Tensor& x, std::initializer_list<const Linear*> linears, const Pass& pass,
               const Function& function) {
    std::vector<Linear> given;
    std::vector<at::Tensor> tensors{x};
    std::vector<bool> biased;
    for (const Linear* linear : linears) {
        given.push_back(*linear);
        tensors.push_back(linear->weight);
        biased.push_back(linear->bias.defined());
        if (biased.back()) {
            tensors.push_back(linear->bias);
        }
    }
    if (!pass.recompute || !c10::GradMode::is_enabled()) {
        return function(x, given);
    }
    return recomputed(
        [function, biased](const std::vector<at::Tensor>& inputs) {
            std::vector<Linear> layers;
            std::size_t next = 1;
            for (const bool bias : biased) {
                layers.push_back({inputs[next], bias ? inputs[next + 1] : at::Tensor()});
                next += bias ? 2 : 1;
            }
            return function(inputs[0], layers);
        },
        tensors);
}

} // namespace

at::Tensor add_mlp(const at::Tensor& residual, const at::Tensor& x, const Linear& up, const Linear& down,
                   Activation activation, const Pass& pass) {
    if (pass.workspace == nullptr) {
        return residual + mlp(x, {&up, &down}, pass, [activation](const at::Tensor& in, const auto& of) {
                   return plain_linear(activate(plain_linear(in, of[0]), activation), of[1]);
               });
    }
    return add_rows(residual, x, down, pass, [&](const at::Tensor& rows) {
        if (fused::suits(rows, up.weight) && fused::has(activation)) {
            return fused::linear(rows, up.weight, up.bias, activation);
        }
        return activated_product(rows, up, activation, pass, Workspace::Use::inner);
    });
}

at::Tensor add_gated_mlp(const at::Tensor& residual, const at::Tensor& x, const Linear& gate,
                         const Linear& up, const Linear& down, Activation activation, const Pass& pass) {
    if (pass.workspace == nullptr) {
        return residual +
               mlp(x, {&gate, &up, &down}, pass, [activation](const at::Tensor& in, const auto& of) {
                   return plain_linear(
                       activate(plain_linear(in, of[0]), activation) * plain_linear(in, of[1]), of[2]);
               });
    }
    return add_rows(residual, x, down, pass, [&](const at::Tensor& rows) {
        if (fused::suits(rows, gate.weight) && fused::has(activation)) {
            const at::Tensor gated = fused::linear(rows, gate.weight, gate.bias, activation);
            return fused::linear_multiply(rows, up.weight, up.bias, gated);
        }
        at::Tensor inner =
            pass.workspace->take(Workspace::Use::inner, {rows.size(0), up.weight.size(0)}, x.options());
        if (unit_multiplies(rows, up.weight)) {
            const at::Tensor gated = activated_product(rows, gate, activation, pass, Workspace::Use::gate);
            unit_linear(inner, rows, up.weight, up.bias, *pass.workspace, {Activation::linear, gated, true});
            return inner;
        }
        linear_out(inner, rows, up, pass);
        return inner.mul_(activated_product(rows, gate, activation, pass, Workspace::Use::gate));
    });
}

at::Tensor attending(const at::Tensor& x, const Pass& pass) {
    return pass.queries.defined() ? x.index_select(0, pass.queries) : x;
}

namespace {

/// cos and sin of a layer; undefined where the layer does not rotate.
std::pair<at::Tensor, at::Tensor> angles_of(std::int64_t layer, const ModelConfig& config, const Pass& pass) {
    if (config.layer_rope.empty() || !pass.cos.defined()) {
        return {pass.cos, pass.sin};
    }
    const LayerRope kind = config.layer_rope[static_cast<std::size_t>(layer)];
    if (kind == LayerRope::none) {
        return {};
    }
    if (pass.cos.dim() == 2) {
        return {pass.cos, pass.sin};
    }
    const std::int64_t table = kind == LayerRope::local ? 1 : 0;
    return {pass.cos.select(0, table), pass.sin.select(0, table)};
}

/// Tells listeners what a layer's attention is computed from.
void tell_attention(std::int64_t layer, const at::Tensor& query, const at::Tensor& key,
                    const Visibility& visibility, double scale, const ScoreExtras& extras, const Pass& pass) {
    const Tap& tap = pass.tap;
    if (!tap.wanted("attention")) {
        return;
    }
    Visibility heard = visibility;
    heard.ranges = tap.at_home(visibility.ranges);
    tap.listener->attends({layer,
                           tap.at_home(query),
                           tap.at_home(key),
                           std::move(heard),
                           scale,
                           tap.at_home(pass.row_bias),
                           {extras.softcap, tap.at_home(extras.sinks)},
                           tap.at_home(pass.rows),
                           pass.tokens,
                           tap.step,
                           {}});
}

} // namespace

at::Tensor self_attention(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const ModelConfig& config, const Pass& pass, const HeadExtras& extras,
                          std::optional<double> scale) {
    const bool chosen = q.size(0) != k.size(0); // q holds the queries' rows alone
    const bool pairs = config.rope.pairs;
    const auto [cos, sin] = angles_of(layer, config, pass);
    const bool key_normed_last = extras.key && extras.key_after_rotation;
    const at::Tensor plain_query =
        extras.query ? normalise_heads(q, *extras.query, pass, Workspace::Use::query_normed) : q;
    const at::Tensor plain_key = extras.key && !extras.key_after_rotation
                                     ? normalise_heads(k, *extras.key, pass, Workspace::Use::key_normed)
                                     : k;
    const at::Tensor query_rows = chosen ? attending(pass.rotation_rows, pass) : pass.rotation_rows;
    at::Tensor query = plain_query;
    at::Tensor key = plain_key;
    at::Tensor value = v;
    const CudaKernels* cuda = c10::GradMode::is_enabled() ? nullptr : cuda_kernels(q);
    const bool by_kernel = cuda != nullptr && cuda->rotate_fits(plain_query) &&
                           cuda->rotate_fits(plain_key) && cuda->rotate_fits(v);
    // Keys and values go to where they are kept at once, unless something still happens to them.
    const bool straight = (pass.workspace != nullptr || by_kernel) && pass.kv != nullptr &&
                          pass.mixer == nullptr && !key_normed_last &&
                          pass.kv->k(layer).scalar_type() == k.scalar_type();
    if (pass.workspace != nullptr || (by_kernel && (straight || cos.defined()))) {
        const auto rotate_to = by_kernel ? cuda->rotate_into : &rotate_into;
        const auto room = [&](Workspace::Use use, const at::Tensor& like) {
            return pass.workspace != nullptr ? pass.workspace->take(use, like.sizes(), like.options())
                                             : at::empty(like.sizes(), like.options());
        };
        query = room(Workspace::Use::query, q);
        rotate_to(query, plain_query, cos, sin, query_rows, {}, pairs);
        key = straight ? pass.kv->k(layer) : room(Workspace::Use::key, k);
        const at::Tensor places = straight ? pass.rows : at::Tensor();
        rotate_to(key, plain_key, cos, sin, pass.rotation_rows, places, pairs);
        if (straight || !by_kernel) {
            value = straight ? pass.kv->v(layer) : room(Workspace::Use::value, v);
            rotate_to(value, v, {}, {}, {}, places, false);
        }
    } else if (cos.defined()) {
        query = rotate(plain_query, cos, sin, query_rows, pairs);
        key = rotate(plain_key, cos, sin, pass.rotation_rows, pairs);
    }
    if (extras.query_scale.defined()) {
        query = query * extras.query_scale;
    }
    if (key_normed_last) {
        key = normalise_heads(key, *extras.key, pass, Workspace::Use::key_normed);
    }
    if (pass.mixer != nullptr) {
        value = pass.mixer->mix(layer, query, key, value, pass);
    }
    if (!chosen) {
        query = attending(query, pass);
    }
    // Under autocast products are of its dtype, norms and mixtures may be wider: what the value's product
    // has.
    for (at::Tensor* const tensor : {&query, &key, &value}) {
        *tensor = tensor->to(v.scalar_type());
    }
    if (pass.kv != nullptr && !straight) {
        pass.kv->put(layer, pass.rows, key, value);
        key = pass.kv->k(layer);
        value = pass.kv->v(layer);
    }
    const std::int64_t width = q.size(1) * q.size(2);
    if (query.size(0) == 0) {
        return at::empty({0, width}, query.options());
    }
    Visibility visibility = pass.visibility;
    if (!config.sliding_windows.empty()) {
        visibility.window = config.sliding_windows[static_cast<std::size_t>(layer)];
    }
    const double factor = scale.value_or(
        config.scales.attention.value_or(1.0 / std::sqrt(static_cast<double>(config.head_dim))));
    const ScoreExtras score_extras{config.scales.attention_softcap, extras.sinks};
    tell_attention(layer, query, key, visibility, factor, score_extras, pass);
    return attend(query, key, value, visibility, factor, pass.row_bias, score_extras)
        .reshape({query.size(0), width});
}

} // namespace ponderscope::blocks
