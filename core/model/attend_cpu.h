// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/attend.h"

namespace ponderscope {

/// attend for checked arguments on the CPU, without gradient; fp32, bf16 or fp16. Blocks of neighbouring
/// queries that see the same rows but for their ends run through tiles of keys with an online softmax in
/// fp32; no mask and no score matrix ever exists. A query's result does not depend on other sequences, bit
/// for bit. Threads by at::parallel_for. bf16 runs on the processor's matrix unit, where there is one and
/// `matrix_unit` allows it.
at::Tensor attend_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const Visibility& visibility, double scale, const at::Tensor& row_bias,
                      const ScoreExtras& extras = {}, bool matrix_unit = true);

} // namespace ponderscope
