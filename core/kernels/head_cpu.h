// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/head.h"

namespace ponderscope {

/// How much a tile holds: what suits the first and the second cache.
struct HeadTiling {
    std::int64_t rows_per_tile = 128;     ///< words of a logit tile
    std::int64_t rows_per_chunk = 2048;   ///< words whose sums are folded into the total at once
    std::int64_t block_bytes = 512 << 10; ///< of packed states and mixtures that stay in a core's cache
};

/// Measured on whole recordings in fp32 on one core, against read_out_plain: 2.7 times as fast (160M
/// parameters, 50,304 words), 3.3 times (1M, 2,048 words).
/// read_out for checked requests on the CPU: h, weights in fp32, bf16 or fp16; request.previous_rows
/// undefined; top_k 0 or below `longest_list`. Threads by at::parallel_for.
HeadResult read_out_cpu(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request,
                        const HeadTiling& tiling = {});

/// Lists of the largest logits are kept by insertion up to this length.
constexpr std::int64_t longest_list = 512;

} // namespace ponderscope
