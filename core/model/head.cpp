// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/head.h"

#include <ATen/ATen.h>

namespace ponderscope {

HeadResult read_out(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    return read_out_reference(h, weights, request);
}

} // namespace ponderscope
