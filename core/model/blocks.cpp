// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/blocks.h"

#include "core/model/rope.h"

#include <ATen/ATen.h>

#include <cmath>

namespace ponderscope::blocks {

namespace {

std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

/// Normalises each head of \p x [n, heads, d_h] separately.
at::Tensor normalise_heads(const at::Tensor& x, const Norm& norm) {
    return normalise(x.reshape({-1, x.size(2)}), norm).view(x.sizes());
}

/// The norm's factor: the stored weight, or with one_plus 1 + weight in fp32 (fp64 for fp64).
at::Tensor factor_of(const Norm& norm) {
    if (!norm.one_plus) {
        return norm.weight;
    }
    return norm.weight.to(norm.weight.scalar_type() == at::kDouble ? at::kDouble : at::kFloat) + 1;
}

} // namespace

Linear Linear::part(std::int64_t first, std::int64_t count) const {
    if (!weight.defined()) {
        return {};
    }
    return {weight.narrow(0, first, count), bias.defined() ? bias.narrow(0, first, count) : bias};
}

at::Tensor linear(const at::Tensor& x, const Linear& weights) {
    return at::linear(x, weights.weight, if_defined(weights.bias));
}

at::Tensor normalise(const at::Tensor& x, const Norm& norm) {
    if (norm.kind == NormKind::layer_norm) {
        return at::layer_norm(x, {x.size(-1)}, if_defined(norm.weight), if_defined(norm.bias), norm.eps);
    }
    const at::Tensor factor = factor_of(norm);
    // On a GPU, LibTorch has one kernel for this. On the CPU it runs several operations, like the code below.
    if (!x.is_cpu() && norm.kind == NormKind::rms_norm &&
        (!factor.defined() || factor.scalar_type() == x.scalar_type())) {
        return at::rms_norm(x, {x.size(-1)}, if_defined(factor), norm.eps);
    }
    const at::ScalarType compute = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor wide = x.to(compute);
    const at::Tensor squares = wide.square();
    const at::Tensor power = norm.kind == NormKind::unit ? squares.sum(-1, true) : squares.mean(-1, true);
    const at::Tensor scaled = wide * at::rsqrt(power + norm.eps);
    return (factor.defined() ? scaled * factor.to(compute) : scaled).to(x.scalar_type());
}

at::Tensor scaled_by(const at::Tensor& x, const at::Tensor& scale) {
    return (x * scale).to(x.scalar_type());
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

at::Tensor attending(const at::Tensor& x, const Pass& pass) {
    return pass.queries.defined() ? x.index_select(0, pass.queries) : x;
}

namespace {

/// cos and sin of a layer; undefined if the layer does not rotate.
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

/// Passes the inputs of a layer's attention to the listener.
void tell_attention(std::int64_t layer, const at::Tensor& query, const at::Tensor& key,
                    const Visibility& visibility, double scale, const ScoreExtras& extras, const Pass& pass) {
    const Tap& tap = pass.tap;
    if (!tap.wanted("attention")) {
        return;
    }
    tap.listener->attends(
        {layer, query, key, visibility, scale, pass.row_bias, extras, pass.rows, pass.tokens, tap.step, {}});
}

} // namespace

at::Tensor self_attention(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const ModelConfig& config, const Pass& pass, const HeadExtras& extras,
                          std::optional<double> scale) {
    const bool chosen = q.size(0) != k.size(0); // q has only the rows of the queries
    const auto angles = angles_of(layer, config, pass);
    const bool key_normed_last = extras.key && extras.key_after_rotation;
    const at::Tensor plain_query = extras.query ? normalise_heads(q, *extras.query) : q;
    const at::Tensor plain_key =
        extras.key && !extras.key_after_rotation ? normalise_heads(k, *extras.key) : k;
    const at::Tensor query_rows = chosen ? attending(pass.rotation_rows, pass) : pass.rotation_rows;
    const auto turned = [&](const at::Tensor& heads, const at::Tensor& rows) {
        return angles.first.defined() ? rotate(heads, angles.first, angles.second, rows, config.rope.pairs)
                                      : heads;
    };
    at::Tensor query = turned(plain_query, query_rows);
    at::Tensor key = turned(plain_key, pass.rotation_rows);
    at::Tensor value = v;
    if (extras.query_scale.defined()) {
        query = query * extras.query_scale;
    }
    if (key_normed_last) {
        key = normalise_heads(key, *extras.key);
    }
    if (pass.mixer != nullptr) {
        value = pass.mixer->mix(layer, query, key, value, pass);
    }
    if (!chosen) {
        query = attending(query, pass);
    }
    // Under autocast, products have its dtype, but norms and mixtures may be wider. Use the dtype of v.
    for (at::Tensor* const tensor : {&query, &key, &value}) {
        *tensor = tensor->to(v.scalar_type());
    }
    if (pass.kv != nullptr) {
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
        for (const auto& [window, ranges] : pass.window_ranges) {
            if (window == visibility.window) {
                visibility.ranges = ranges;
                visibility.window = 0;
                break;
            }
        }
    }
    const double factor = scale.value_or(
        config.scales.attention.value_or(1.0 / std::sqrt(static_cast<double>(config.head_dim))));
    const ScoreExtras score_extras{config.scales.attention_softcap, extras.sinks};
    tell_attention(layer, query, key, visibility, factor, score_extras, pass);
    return attend(query, key, value, visibility, factor, pass.row_bias, score_extras)
        .reshape({query.size(0), width});
}

} // namespace ponderscope::blocks
