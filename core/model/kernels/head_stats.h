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
    float* log_sum_exp = nullptr;          ///< always wanted
    float* nll = nullptr;                  ///< with targets; NaN where there is none
    std::int64_t* rank = nullptr;          ///< with targets; 0 where there is none
    float* entropy = nullptr;
    std::int64_t list_length = 0;     ///< the largest logits, at most longest_cuda_list and the vocabulary
    float* list_values = nullptr;     ///< [rows, list_length], falling; of equals the lower id first
    std::int64_t* list_ids = nullptr; ///< [rows, list_length]
};

constexpr std::int64_t longest_cuda_list = 256;

/// Queues on a cudaStream_t; null, or what is wrong. Reads the logits once, and once more for the list.
const char* head_rows_cuda(const HeadRows& arguments, void* stream);

/// KL(P || Q) and KL(Q || P) of rows of logits p, q, given log Σ exp of both.
struct DivergenceRows {
    const float* p = nullptr; ///< [rows, vocabulary]
    const float* q = nullptr;
    const float* p_log_sum_exp = nullptr; ///< [rows]
    const float* q_log_sum_exp = nullptr;
    std::int64_t rows = 0;
    std::int64_t vocabulary = 0;
    float* forward = nullptr;  ///< KL(P || Q) [rows]
    float* backward = nullptr; ///< KL(Q || P) [rows]
};

const char* divergence_rows_cuda(const DivergenceRows& arguments, void* stream);

} // namespace ponderscope::kernels
