// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace ponderscope {

/// A part of a model as a pure function of the tensors it is given: no state, no chance.
using PureFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// function(inputs), with a graph that keeps the inputs alone: what lies between is computed again when the
/// gradient comes by (Chen et al. 2016, "Training deep nets with sublinear memory cost"; here for parts of a
/// layer, as in Korthikanti et al. 2022). Same numbers, more time. Every input is defined; under autocast the
/// second computation runs as the first did. Differentiable once.
at::Tensor recomputed(const PureFunction& function, const std::vector<at::Tensor>& inputs);

} // namespace ponderscope
