// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ponderscope {

/// How sublayers are joined, where it is not x + F(x): the cross-layer baselines of the Depth-Attention paper
/// (methods.md section 3). Sublayer c = 2l is layer l's attention, 2l + 1 its MLP; F_c(x) applies the
/// sublayer after its usual norm, without a residual.
class ResidualStructure {
public:
    using Sublayer = std::function<at::Tensor(std::int64_t c, const at::Tensor& x)>;
    virtual ~ResidualStructure() = default;
    /// The stack from \p x [n, d] to the input of the final norm. \p apply's result is valid until its next
    /// call.
    [[nodiscard]] virtual at::Tensor run(const at::Tensor& x, const Sublayer& apply,
                                         const Pass& pass) const = 0;
};

/// The structure's own tensors; none where the residual is the usual one.
std::vector<TensorSpec> residual_tensors(const ModelConfig& config);
/// nullptr where the residual is the usual one.
std::unique_ptr<ResidualStructure> make_residual_structure(const ModelConfig& config,
                                                           const Parameters& parameters);

// One file each.
std::vector<TensorSpec> hyper_connection_tensors(const ModelConfig& config);
std::unique_ptr<ResidualStructure> make_hyper_connections(const ModelConfig& config,
                                                          const Parameters& parameters);
std::vector<TensorSpec> attention_residual_tensors(const ModelConfig& config);
std::unique_ptr<ResidualStructure> make_attention_residuals(const ModelConfig& config,
                                                            const Parameters& parameters);
std::vector<TensorSpec> depth_average_tensors(const ModelConfig& config);
std::unique_ptr<ResidualStructure> make_depth_average(const ModelConfig& config,
                                                      const Parameters& parameters);

/// A tensor that no product reads: it counts for nothing in FLOPs.
inline TensorSpec small_tensor(std::string name, std::vector<std::int64_t> shape, double start) {
    return {std::move(name), std::move(shape), TensorSpec::Init::constant, start, {}, -1, false};
}

} // namespace ponderscope
