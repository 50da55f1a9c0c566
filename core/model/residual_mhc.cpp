// SPDX-License-Identifier: GPL-3.0-or-later
// mHC, manifold-constrained hyper-connections: S streams instead of one. Every sublayer reads a mixture of
// the streams and writes to all of them. A doubly stochastic matrix (Sinkhorn) mixes the streams. The
// mixtures depend on the token. Equations: methods.md section 3.
#include "core/model/blocks.h"
#include "core/model/residual.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

constexpr double smallest = 1e-12;

std::string connector(std::int64_t c) {
    return "model.layers." + std::to_string(c / 2) + (c % 2 == 0 ? ".attn" : ".mlp") + "_residual_connector.";
}

class HyperConnections final : public ResidualStructure {
public:
    HyperConnections(const ModelConfig& config, TensorBuilder& builder);
    [[nodiscard]] at::Tensor run(const at::Tensor& x, const Sublayer& apply, const Pass& pass) const override;

private:
    struct Connector {
        blocks::Norm norm;                                ///< over S·d elements
        at::Tensor projection;                            ///< [2S + S², S·d]
        at::Tensor pre, post, residual;                   ///< fp32 [S], [S], [S, S]
        at::Tensor alpha_pre, alpha_post, alpha_residual; ///< fp32 scalars
    };
    struct Maps {
        at::Tensor read;  ///< fp32 [n, S]
        at::Tensor write; ///< fp32 [n, S]
        at::Tensor mix;   ///< fp32 [n, S, S], row i: weights of the streams in new stream i
    };
    [[nodiscard]] Maps maps(const Connector& connector, const at::Tensor& streams) const;

    std::int64_t streams_, iterations_;
    std::vector<Connector> connectors_;
    at::Tensor reduce_; ///< fp32 [S]
};

HyperConnections::HyperConnections(const ModelConfig& config, TensorBuilder& builder)
    : streams_(config.depth.streams), iterations_(config.depth.sinkhorn_iters) {
    const std::int64_t s = streams_;
    const std::int64_t width = s * config.hidden_size;
    for (std::int64_t c = 0; c < 2 * config.layers; ++c) {
        const std::string prefix = connector(c);
        Connector one;
        one.pre = small_tensor(builder, prefix + "pre_logits", {s}, 0.0);
        one.post = small_tensor(builder, prefix + "post_logits", {s}, 0.0);
        // Nearly the identity, so that each stream begins as a separate residual sum.
        one.residual =
            small_tensor(builder, prefix + "residual_logits", {s, s}, -8.0, TensorSpec::Init::diagonal);
        one.norm = builder.norm(prefix + "mhc_input_norm", width);
        one.projection = builder.matrix(prefix + "mhc_dynamic_projection.weight", 2 * s + s * s, width);
        one.alpha_pre = small_tensor(builder, prefix + "alpha_pre", {}, 0.01);
        one.alpha_post = small_tensor(builder, prefix + "alpha_post", {}, 0.01);
        one.alpha_residual = small_tensor(builder, prefix + "alpha_res", {}, 0.01);
        connectors_.push_back(std::move(one));
    }
    reduce_ = small_tensor(builder, "model.residual_stream_projector.reduce_logits", {s}, 0.0);
}

HyperConnections::Maps HyperConnections::maps(const Connector& connector, const at::Tensor& streams) const {
    const std::int64_t s = streams_;
    const at::Tensor normed = blocks::normalise(streams.flatten(1), connector.norm);
    const at::Tensor dynamic = at::linear(normed, connector.projection).to(at::kFloat);
    Maps maps;
    maps.read = at::sigmoid(connector.alpha_pre * dynamic.narrow(1, 0, s) + connector.pre);
    maps.write = 2 * at::sigmoid(connector.alpha_post * dynamic.narrow(1, s, s) + connector.post);
    const at::Tensor logits =
        connector.alpha_residual * dynamic.narrow(1, 2 * s, s * s).view({-1, s, s}) + connector.residual;
    maps.mix = at::exp(logits - logits.amax({1, 2}, true)).clamp_min(smallest);
    for (std::int64_t i = 0; i < iterations_; ++i) {
        maps.mix = maps.mix / maps.mix.sum(2, true).clamp_min(smallest);
        maps.mix = maps.mix / maps.mix.sum(1, true).clamp_min(smallest);
    }
    return maps;
}

at::Tensor HyperConnections::run(const at::Tensor& x, const Sublayer& apply, const Pass& pass) const {
    const at::ScalarType type = x.scalar_type();
    at::Tensor streams = x.unsqueeze(1).expand({x.size(0), streams_, x.size(1)}).contiguous();
    for (std::size_t c = 0; c < connectors_.size(); ++c) {
        const Maps by = maps(connectors_[c], streams);
        pass.tap("mhc_read", by.read, static_cast<std::int64_t>(c));
        pass.tap("mhc_write", by.write, static_cast<std::int64_t>(c));
        const at::Tensor wide = streams.to(at::kFloat);
        const at::Tensor input = (by.read.unsqueeze(2) * wide).sum(1).to(type);
        const at::Tensor output = apply(static_cast<std::int64_t>(c), input).to(at::kFloat);
        streams =
            (at::matmul(by.mix, wide) + by.write.unsqueeze(2) * output.unsqueeze(1)).to(type).contiguous();
        if (c % 2 == 1) {
            pass.tap("streams", streams, static_cast<std::int64_t>(c / 2));
        }
    }
    const at::Tensor share = at::softmax(reduce_, 0).view({1, -1, 1});
    return (share * streams.to(at::kFloat)).sum(1).to(type);
}

} // namespace

std::unique_ptr<ResidualStructure> make_hyper_connections(const ModelConfig& config, TensorBuilder& builder) {
    return std::make_unique<HyperConnections>(config, builder);
}

} // namespace ponderscope
