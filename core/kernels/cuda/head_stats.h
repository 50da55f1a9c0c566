// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cpu/online_sums.h"

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

/// What is known of a row between its tiles.
struct HeadSoFar {
    OnlineSums sums;
    OnlineDivergence divergence; ///< with `before`
    float target = 0;            ///< its logit, once its tile has come
    int larger = 0;
};

/// The same of rows whose logits come some words at a time, first to last, so that they need not leave the
/// cache. Of many rows: a warp each.
struct HeadTile {
    HeadRows of;           ///< `logits` [rows, words]; a list of at most longest_tile_list; -1: not yet an id
    std::int64_t word = 0; ///< the tile's first
    std::int64_t words = 0;
    const float* pivots = nullptr; ///< [rows], with targets: their logits but for rounding, which larger ones
                                   ///< are counted against
    HeadSoFar* so_far = nullptr;   ///< [rows]; written by the first tile
    const float* before = nullptr; ///< [rows, words] of other distributions Q, with the two below
    float* forward = nullptr;      ///< KL(P || Q) [rows], as of DivergenceRows
    float* backward = nullptr;     ///< KL(Q || P) [rows]
};

constexpr std::int64_t longest_tile_list = 32;

const char* head_tile_cuda(const HeadTile& arguments, void* stream);

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
