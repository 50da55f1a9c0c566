// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

struct AdamWConfig {
    double beta1 = 0.9;
    double beta2 = 0.95;
    double weight_decay = 0.1;
    double eps = 1e-8;
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019), for all parameters of a model at once:
///   p <- p (1 - lr wd);  m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g²;
///   p <- p - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps),  t = 1, 2, ...
/// Vectors and scalars (biases, norms) do not decay.
///
/// Parameters must be fp32 leaves on one device that require gradients. Not thread-safe.
class AdamW {
public:
    AdamW(const NamedTensors& parameters, const AdamWConfig& config);

    void zero_gradients();
    /// Euclidean norm over all gradients, accumulated in fp64. Waits for the device.
    [[nodiscard]] double gradient_norm() const;
    /// The first parameter, in the given order, whose gradient is not finite; empty: all are finite.
    [[nodiscard]] std::string first_bad_gradient() const;
    /// The first parameter that is not finite; empty: all are finite.
    [[nodiscard]] std::string first_bad_parameter() const;
    void scale_gradients(double factor);
    void step(double learning_rate);

    [[nodiscard]] std::int64_t steps() const { return steps_; }
    /// The moments, in the order and shape of the parameters, for saving and for restoring in place.
    [[nodiscard]] const NamedTensors& first_moments() const { return first_; }
    [[nodiscard]] const NamedTensors& second_moments() const { return second_; }
    void set_steps(std::int64_t steps) { steps_ = steps; }

private:
    AdamWConfig config_;
    NamedTensors parameters_, first_, second_;
    std::int64_t steps_ = 0;
};

} // namespace ponderscope
