// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda/attend_ranges.h"

#include <cstdint>

namespace ponderscope::kernels {

/// Statistics of rows of logits on a GPU. All pointers are device pointers. A null output is not computed.
/// Each output has one element (or `list_length` elements) per row.
struct HeadRows {
    const float* logits = nullptr; ///< [rows, vocabulary], contiguous
    std::int64_t rows = 0;
    std::int64_t vocabulary = 0;
    const std::int64_t* targets = nullptr; ///< negative: no target
    float* maximum = nullptr;     ///< log p(v) = (logit(v) - maximum) - log(sum); NaN: no distribution
    float* sum = nullptr;         ///< not added to `maximum`, because a large maximum would absorb log(sum)
    float* nll = nullptr;         ///< NLL of the target; NaN: no target, or no distribution
    std::int64_t* rank = nullptr; ///< rank of the target; 0: no target
    float* entropy = nullptr;
    std::int64_t list_length = 0; ///< at most longest_head_list and the vocabulary
    float* list_values = nullptr; ///< [rows, list_length], largest logits, descending; ties by ascending id
    std::int64_t* list_ids = nullptr; ///< [rows, list_length]
};

constexpr std::int64_t longest_head_list = 128;

/// Queues the kernel on a cudaStream_t. Returns null or an error message. Reads the logits once, and some of
/// them a second time for the list.
const char* head_rows_cuda(const HeadRows& arguments, void* stream);

/// Computes e^(logit - maximum) · factor for every logit, the left factor of a matrix product.
struct HeadExponentials {
    const float* logits = nullptr; ///< [rows, vocabulary]
    const float* maximum = nullptr;
    std::int64_t rows = 0;
    std::int64_t vocabulary = 0;
    float factor = 1;
    void* out = nullptr; ///< [rows, vocabulary] of `element`; may overwrite the logits
    Element element = Element::f32;
};

const char* head_exponentials_cuda(const HeadExponentials& arguments, void* stream);

/// KL(P || Q) and KL(Q || P) of rows of logits p and q. Infinite if a token is impossible (-infinity) in the
/// second distribution only. NaN if a row of p or q gives no distribution.
struct HeadDivergences {
    const float* p = nullptr; ///< [rows, vocabulary]
    const float* q = nullptr;
    const float* p_maximum = nullptr; ///< [rows], as in HeadRows
    const float* p_sum = nullptr;
    const float* q_maximum = nullptr;
    const float* q_sum = nullptr;
    std::int64_t rows = 0;
    std::int64_t vocabulary = 0;
    float* forward = nullptr;  ///< KL(P || Q) [rows]
    float* backward = nullptr; ///< KL(Q || P) [rows]
};

const char* head_divergences_cuda(const HeadDivergences& arguments, void* stream);

} // namespace ponderscope::kernels
