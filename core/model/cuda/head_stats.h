// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace ponderscope::kernels {

/// Statistics of whole rows of logits on a GPU. Device pointers; null: not wanted. Each output has one
/// element (or `list_length`) a row.
struct HeadRows {
    const float* logits = nullptr; ///< [rows, vocabulary], contiguous
    std::int64_t rows = 0;
    std::int64_t vocabulary = 0;
    const std::int64_t* targets = nullptr; ///< negative: none
    float* log_sum_exp = nullptr;          ///< +infinity where a logit is, -infinity where all are
    float* maximum = nullptr;     ///< with log_sum: log p(v) = (logit(v) - maximum) - log_sum, which a
    float* log_sum = nullptr;     ///< maximum of -1e35 does not hurt; NaN where there is no distribution
    float* nll = nullptr;         ///< with targets; NaN where there is none, or no distribution
    std::int64_t* rank = nullptr; ///< with targets; 0 where there is none
    float* entropy = nullptr;
    std::int64_t list_length = 0;     ///< the largest logits, at most longest_cuda_list and the vocabulary
    float* list_values = nullptr;     ///< [rows, list_length], falling; of equals the lower id first
    std::int64_t* list_ids = nullptr; ///< [rows, list_length]
};

constexpr std::int64_t longest_cuda_list = 256;
constexpr std::int64_t most_cuda_rows = 0x7fffffff; ///< a block each; of words there are as many at most

/// Queues on a cudaStream_t; null, or what is wrong. Reads the logits once, and once more for the list.
const char* head_rows_cuda(const HeadRows& arguments, void* stream);

/// KL(P || Q) and KL(Q || P) of rows of logits p, q, given both rows' maximum and log_sum of HeadRows.
/// Infinite where a word is impossible (-infinity) in the second distribution alone; NaN where one of the two
/// is none.
struct DivergenceRows {
    const float* p = nullptr; ///< [rows, vocabulary]
    const float* q = nullptr;
    const float* p_maximum = nullptr; ///< [rows]
    const float* p_log_sum = nullptr;
    const float* q_maximum = nullptr;
    const float* q_log_sum = nullptr;
    std::int64_t rows = 0;
    std::int64_t vocabulary = 0;
    float* forward = nullptr;  ///< KL(P || Q) [rows]
    float* backward = nullptr; ///< KL(Q || P) [rows]
};

const char* divergence_rows_cuda(const DivergenceRows& arguments, void* stream);

} // namespace ponderscope::kernels
