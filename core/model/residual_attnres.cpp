// SPDX-License-Identifier: GPL-3.0-or-later
// Block AttnRes: every sublayer reads a softmax mixture of the current stream and of snapshots of it, taken
// at the end of each block of sublayers. Equations: methods.md section 3.
#include "core/model/residual.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

const char* const final_aggregator = "model.attnres_final_aggregator.";

std::string aggregator(std::int64_t c) {
    return "model.layers." + std::to_string(c / 2) +
           (c % 2 == 0 ? ".attnres_attn_aggregator." : ".attnres_mlp_aggregator.");
}

class AttentionResiduals final : public ResidualStructure {
public:
    AttentionResiduals(const ModelConfig& config, TensorBuilder& builder);
    [[nodiscard]] at::Tensor run(const at::Tensor& x, const Sublayer& apply, const Pass& pass) const override;

private:
    struct Aggregator {
        at::Tensor pseudo_query, norm; ///< fp32 [d]
        at::Tensor recency_bias;       ///< fp32 scalar
    };
    /// \p c: the number of the sublayer that reads the result, for taps.
    [[nodiscard]] at::Tensor aggregate(const Aggregator& by, const std::vector<at::Tensor>& snapshots,
                                       const at::Tensor& running, std::int64_t c, const Pass& pass) const;

    double eps_;
    std::int64_t block_;
    std::vector<Aggregator> aggregators_; ///< one for each sublayer, then the final one
};

AttentionResiduals::AttentionResiduals(const ModelConfig& config, TensorBuilder& builder)
    : eps_(config.norm_eps), block_(config.depth.block_size) {
    for (std::int64_t c = 0; c <= 2 * config.layers; ++c) {
        const std::string prefix = c < 2 * config.layers ? aggregator(c) : final_aggregator;
        aggregators_.push_back({small_tensor(builder, prefix + "pseudo_query", {config.hidden_size}, 0.0),
                                small_tensor(builder, prefix + "norm.weight", {config.hidden_size}, 1.0),
                                small_tensor(builder, prefix + "recency_bias", {}, 0.0)});
    }
}

at::Tensor AttentionResiduals::aggregate(const Aggregator& by, const std::vector<at::Tensor>& snapshots,
                                         const at::Tensor& running, std::int64_t c, const Pass& pass) const {
    std::vector<at::Tensor> scores;
    const at::Tensor query = by.pseudo_query * by.norm;
    const auto score = [&](const at::Tensor& source) {
        const at::Tensor wide = source.to(at::kFloat);
        return at::matmul(wide, query) * at::rsqrt(wide.square().mean(1) + eps_);
    };
    for (const at::Tensor& snapshot : snapshots) {
        scores.push_back(score(snapshot));
    }
    scores.push_back(score(running) + by.recency_bias);
    const at::Tensor weights = at::softmax(at::stack(scores, 1), 1); // [n, sources]
    pass.tap("attnres_weights", weights, c);
    at::Tensor sum = weights.select(1, weights.size(1) - 1).unsqueeze(1) * running.to(at::kFloat);
    for (std::size_t s = 0; s < snapshots.size(); ++s) {
        sum =
            sum + weights.select(1, static_cast<std::int64_t>(s)).unsqueeze(1) * snapshots[s].to(at::kFloat);
    }
    return sum.to(running.scalar_type());
}

at::Tensor AttentionResiduals::run(const at::Tensor& x, const Sublayer& apply, const Pass& pass) const {
    std::vector<at::Tensor> snapshots{x};
    at::Tensor running = x;
    std::int64_t since = 0; // sublayers since the last snapshot
    const auto last = static_cast<std::int64_t>(aggregators_.size()) - 1;
    for (std::int64_t c = 0; c < last; ++c) {
        const at::Tensor input =
            aggregate(aggregators_[static_cast<std::size_t>(c)], snapshots, running, c, pass);
        running = running + apply(c, input);
        if (c % 2 == 1) {
            pass.tap("layer_output", running, c / 2);
            since += 2;
            if (since >= block_) {
                snapshots.push_back(running);
                since = 0;
            }
        }
    }
    return aggregate(aggregators_.back(), snapshots, running, last, pass);
}

} // namespace

std::unique_ptr<ResidualStructure> make_attention_residuals(const ModelConfig& config,
                                                            TensorBuilder& builder) {
    return std::make_unique<AttentionResiduals>(config, builder);
}

} // namespace ponderscope
