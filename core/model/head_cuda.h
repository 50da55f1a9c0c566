// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/head.h"

namespace ponderscope {

/// Whether read_out_cuda was compiled in and takes this request.
bool read_out_cuda_fits(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request);

/// read_out on a GPU for checked requests: logits of some thousand tokens at a time, read once by a kernel
/// that makes their statistics. Nothing is read back from the device.
HeadResult read_out_cuda(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request);

} // namespace ponderscope
