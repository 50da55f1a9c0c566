// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/model/tensor_builder.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Structures that replace the residual sum x + F(x): the cross-layer baselines of the Depth-Attention paper
/// (methods.md section 3). Sublayer c = 2l is layer l's attention, 2l + 1 its MLP. F_c(x) applies the
/// sublayer after its usual norm, without a residual.
class ResidualStructure {
public:
    using Sublayer = std::function<at::Tensor(std::int64_t c, const at::Tensor& x)>;
    virtual ~ResidualStructure() = default;
    /// Runs the stack from \p x [n, d] to the input of the final norm. The result of \p apply is valid until
    /// the next call.
    [[nodiscard]] virtual at::Tensor run(const at::Tensor& x, const Sublayer& apply,
                                         const Pass& pass) const = 0;
};

/// Makes the structure and declares its tensors. nullptr for the usual residual.
std::unique_ptr<ResidualStructure> make_residual_structure(const ModelConfig& config, TensorBuilder& builder);

// Each of these functions has its own file.
std::unique_ptr<ResidualStructure> make_hyper_connections(const ModelConfig& config, TensorBuilder& builder);
std::unique_ptr<ResidualStructure> make_attention_residuals(const ModelConfig& config,
                                                            TensorBuilder& builder);
std::unique_ptr<ResidualStructure> make_depth_average(const ModelConfig& config, TensorBuilder& builder);

/// An fp32 tensor that no matrix product uses, so FLOPs do not include it. Undefined without parameters.
inline at::Tensor small_tensor(TensorBuilder& builder, std::string name, std::vector<std::int64_t> shape,
                               double start, TensorSpec::Init init = TensorSpec::Init::constant) {
    const at::Tensor stored = builder.add({std::move(name), std::move(shape), init, start, {}, -1, false});
    return stored.defined() ? stored.to(at::kFloat) : stored;
}

} // namespace ponderscope
