// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/head.h"

namespace ponderscope {

/// How much a tile holds. A token's result depends on none of it but the rows.
struct HeadTiling {
    std::int64_t rows_per_tile = 0;     ///< words of a logit tile; 0: what suits
    std::int64_t rows_per_chunk = 2048; ///< words whose sums are folded into the total at once
    std::int64_t block_bytes =
        0;               ///< of packed states and mixtures that shall stay in a core's cache; 0: likewise
    bool library = true; ///< its products, and so the matrix unit in bf16, where there are such
};

/// read_out for checked requests on the CPU: h, weights in fp32, bf16 or fp16; request.previous_rows
/// undefined; top_k 0 or below `longest_list`. Threads by at::parallel_for.
HeadResult read_out_cpu(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request,
                        const HeadTiling& tiling = {});

/// Lists of the largest logits are kept by insertion up to this length.
constexpr std::int64_t longest_list = 512;

} // namespace ponderscope
