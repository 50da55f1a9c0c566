// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/model/tensor_builder.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// A mixture of experts, which replaces an MLP: a router chooses k of E small MLPs for every row
/// (config.experts). Rows are sorted by expert, and each expert computes all its rows together. Taps:
/// "router_probabilities" [n, E], "router_experts" int64 [n, k] by descending probability,
/// "router_weights" [n, k].
class Experts {
public:
    /// The mixture with the tensor prefix \p mlp ("model.layers.3.mlp.").
    static Experts declare(TensorBuilder& builder, const std::string& mlp, const ModelConfig& config);

    /// For each row of \p x [n, d]: the weighted sum of the outputs of its chosen experts.
    [[nodiscard]] at::Tensor run(const at::Tensor& x, std::int64_t layer, const Pass& pass) const;

private:
    struct Routing {
        at::Tensor experts; ///< int64 [n, k]
        at::Tensor weights; ///< [n, k]
    };
    /// Weights of all experts.
    struct Projection {
        std::vector<at::Tensor> each; ///< [out, in] for each expert; empty for gpt_oss
        at::Tensor all;               ///< [E, in, out], a view of all experts; undefined: separate memory
        at::Tensor bias;              ///< [E, out]; undefined: none
    };
    /// Rows in the order of their experts; expert e has rows [ends[e - 1], ends[e]).
    struct Groups {
        at::Tensor experts;               ///< int64 [rows], ascending
        at::Tensor ends;                  ///< int32 [E]
        std::vector<std::int64_t> counts; ///< rows of each expert; empty if only the device knows them
    };
    [[nodiscard]] Routing route(const at::Tensor& x, std::int64_t layer, const Pass& pass) const;
    /// rows [n, in] -> [n, out]; each row is multiplied with the weights of its expert.
    [[nodiscard]] static at::Tensor project(const at::Tensor& rows, const Projection& weights,
                                            const Groups& groups);
    [[nodiscard]] bool groups_on_device(const at::Tensor& x) const;
    [[nodiscard]] at::Tensor inner(const at::Tensor& rows, const Groups& groups) const;

    ExpertsConfig config_;
    Activation activation_ = Activation::silu;
    blocks::Linear router_;
    Projection gate_, up_, down_; ///< gpt_oss: gate and up interleaved in gate_
};

} // namespace ponderscope
