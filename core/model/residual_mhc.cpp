// SPDX-License-Identifier: GPL-3.0-or-later
// mHC, manifold-constrained hyper-connections: S streams instead of one. Every sublayer reads a mixture of
// them and writes to all, and a doubly stochastic matrix (Sinkhorn) mixes them among themselves. The maps
// depend on the token. Equations: methods.md section 3.
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
    HyperConnections(const ModelConfig& config, const Parameters& parameters);
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
        at::Tensor mix;   ///< fp32 [n, S, S], row i: what the new stream i takes of each
    };
    [[nodiscard]] Maps maps(const Connector& connector, const at::Tensor& streams) const;

    std::int64_t streams_, iterations_;
    std::vector<Connector> connectors_;
    at::Tensor reduce_; ///< fp32 [S]
};

HyperConnections::HyperConnections(const ModelConfig& config, const Parameters& parameters)
    : streams_(config.depth.streams),
      iterations_(config.depth.sinkhorn_iters),
      reduce_(parameters.at("model.residual_stream_projector.reduce_logits").to(at::kFloat)) {
    for (std::int64_t c = 0; c < 2 * config.layers; ++c) {
        const std::string prefix = connector(c);
        const auto wide = [&](const char* name) { return parameters.at(prefix + name).to(at::kFloat); };
        connectors_.push_back({blocks::Norm::from(parameters, prefix + "mhc_input_norm", config),
                               parameters.at(prefix + "mhc_dynamic_projection.weight"), wide("pre_logits"),
                               wide("post_logits"), wide("residual_logits"), wide("alpha_pre"),
                               wide("alpha_post"), wide("alpha_res")});
    }
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

std::vector<TensorSpec> hyper_connection_tensors(const ModelConfig& config) {
    const std::int64_t s = config.depth.streams;
    const std::int64_t width = s * config.hidden_size;
    std::vector<TensorSpec> specs;
    for (std::int64_t c = 0; c < 2 * config.layers; ++c) {
        const std::string prefix = connector(c);
        specs.push_back(small_tensor(prefix + "pre_logits", {s}, 0.0));
        specs.push_back(small_tensor(prefix + "post_logits", {s}, 0.0));
        // Nearly the identity: each stream begins as its own residual sum.
        specs.push_back(small_tensor(prefix + "residual_logits", {s, s}, -8.0));
        specs.back().init = TensorSpec::Init::diagonal;
        specs.push_back(small_tensor(prefix + "mhc_input_norm.weight", {width}, 1.0));
        specs.push_back({prefix + "mhc_dynamic_projection.weight",
                         {2 * s + s * s, width},
                         TensorSpec::Init::normal,
                         0.02,
                         {},
                         -1,
                         true});
        for (const char* const name : {"alpha_pre", "alpha_post", "alpha_res"}) {
            specs.push_back(small_tensor(prefix + name, {}, 0.01));
        }
    }
    specs.push_back(small_tensor("model.residual_stream_projector.reduce_logits", {s}, 0.0));
    return specs;
}

std::unique_ptr<ResidualStructure> make_hyper_connections(const ModelConfig& config,
                                                          const Parameters& parameters) {
    return std::make_unique<HyperConnections>(config, parameters);
}

} // namespace ponderscope
