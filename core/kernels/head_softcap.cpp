// SPDX-License-Identifier: GPL-3.0-or-later
// A file of its own: the engine and its CUDA library both hold it.
#include "core/kernels/head.h"

#include <ATen/ATen.h>

namespace ponderscope {

void cap_logits(at::Tensor& logits, const HeadWeights& weights) {
    if (weights.scale != 1.0) {
        logits.mul_(weights.scale);
    }
    if (weights.softcap > 0) {
        logits.div_(weights.softcap).tanh_().mul_(weights.softcap);
    }
}

} // namespace ponderscope
