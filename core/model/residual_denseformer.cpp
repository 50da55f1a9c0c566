// SPDX-License-Identifier: GPL-3.0-or-later
// DenseFormer: after every P-th layer, a learned average replaces the layer's output. It averages every D-th
// output up to this layer. Equations: methods.md section 3.
#include "core/model/residual.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

class DepthAverage final : public ResidualStructure {
public:
    DepthAverage(const ModelConfig& config, TensorBuilder& builder)
        : layers_(config.layers), dilation_(config.depth.dilation) {
        for (std::int64_t l = 0; l < layers_; ++l) {
            // Training begins as the plain model, with the newest output alone (arXiv 2402.02622, section 3).
            alphas_.push_back((l + 1) % config.depth.period == 0
                                  ? small_tensor(builder,
                                                 "model.densetransformer_dwa.alphas." + std::to_string(l),
                                                 {(l + 1) / dilation_ + 1}, 1.0, TensorSpec::Init::last)
                                  : at::Tensor());
        }
    }

    [[nodiscard]] at::Tensor run(const at::Tensor& x, const Sublayer& apply,
                                 const Pass& pass) const override {
        std::vector<at::Tensor> outputs{x}; // h_0, h_1, ...: outputs of layers, not averages
        at::Tensor mixed = x;
        for (std::int64_t l = 0; l < layers_; ++l) {
            const at::Tensor attended = mixed + apply(2 * l, mixed);
            outputs.push_back(attended + apply(2 * l + 1, attended));
            pass.tap("layer_output", outputs.back(), l);
            mixed = average(l, outputs);
        }
        return mixed;
    }

private:
    [[nodiscard]] at::Tensor average(std::int64_t l, const std::vector<at::Tensor>& outputs) const {
        const at::Tensor& weights = alphas_[static_cast<std::size_t>(l)];
        if (!weights.defined()) {
            return outputs.back();
        }
        at::Tensor sum;
        for (std::int64_t i = 0; i < weights.size(0); ++i) {
            const auto source = static_cast<std::size_t>((l + 1) % dilation_ + i * dilation_);
            const at::Tensor part = weights.select(0, i) * outputs[source].to(at::kFloat);
            sum = sum.defined() ? sum + part : part;
        }
        return sum.to(outputs.back().scalar_type());
    }

    std::int64_t layers_, dilation_;
    std::vector<at::Tensor> alphas_; ///< fp32; undefined after layers without an average
};

} // namespace

std::unique_ptr<ResidualStructure> make_depth_average(const ModelConfig& config, TensorBuilder& builder) {
    return std::make_unique<DepthAverage>(config, builder);
}

} // namespace ponderscope
