// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cpu/aligned.h"
#include "core/kernels/cpu/tile.h"
#include "core/kernels/head_table.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

namespace ponderscope {

/// What the read-out multiplies: fp32, tables of halves widened tile by tile.
struct HeadOperands {
    const kernels::TileKernels& k = kernels::tile_kernels();
    std::int64_t depth = 0;
    HeadTable head;
    HeadTable embedding;  ///< of the expected embedding
    bool mixture = false; ///< over the whole vocabulary
    kernels::AlignedArray<float> bias;
    float softcap = 0; ///< c of c·tanh(logit / c); 0: none
    float scale = 1;   ///< of logits, before the softcap

    /// Tokens side by side in a tile.
    [[nodiscard]] std::int64_t width() const { return static_cast<std::int64_t>(k.lanes) * k.max_vectors; }
};

/// States of a block of tokens, packed with one token a column, group after group.
using PackedStates = kernels::AlignedArray<float>;

/// The products of one block of tokens with rows of the head and of the embedding, tile by tile. Tokens lie
/// in groups of a tile's width; those of the last one may be fewer.
class HeadProducts {
public:
    HeadProducts(const HeadOperands& operands, std::int64_t tokens)
        : o_(operands), tokens_(tokens), width_(operands.width()) {}

    [[nodiscard]] std::int64_t groups() const { return (tokens_ + width_ - 1) / width_; }
    [[nodiscard]] std::int64_t columns(std::int64_t group) const {
        return std::min(width_, tokens_ - group * width_);
    }
    [[nodiscard]] int vectors(std::int64_t group) const {
        return static_cast<int>((columns(group) + o_.k.lanes - 1) / o_.k.lanes);
    }

    /// The block's rows of states, which are contiguous fp32.
    [[nodiscard]] PackedStates pack(const at::Tensor& states, std::int64_t first_token) const;

    /// Chooses the rows of both tables that the next products are of.
    void take(std::int64_t row, std::int64_t rows);
    /// tile[r][j] = logit of the taken row r for token j of the group.
    void logits(const PackedStates& states, std::int64_t group, float* tile);
    /// The logits of one word a token, by the very additions that make them in the tiles; -1: left as it is.
    void logits_of(const PackedStates& states, const std::int64_t* words, float* logits) const;

    /// Expected embeddings of all groups, set to zero: what the functions below add to.
    void clear_mixtures(kernels::AlignedArray<float>& mixtures) const;
    /// += Σ_r tile[r][j] · embedding of the taken row r.
    void mix(std::int64_t group, const float* tile, float* mixtures) const;
    /// Multiplies a token's mixture by its factor.
    void rescale(std::int64_t group, const float* factors, float* mixtures) const;
    void add(std::int64_t group, const float* from, float* mixtures) const;
    /// A token's mixture over a divisor.
    void read(std::int64_t token, const float* mixtures, double divisor, float* out) const;

private:
    [[nodiscard]] std::int64_t stride(std::int64_t group) const {
        return static_cast<std::int64_t>(vectors(group)) * o_.k.lanes;
    }
    [[nodiscard]] std::int64_t offset(std::int64_t group) const { return group * o_.depth * width_; }
    void multiply(const PackedStates& states, std::int64_t group, std::int64_t row, std::int64_t rows,
                  const float* table, std::ptrdiff_t table_stride, float* tile) const;
    const HeadOperands& o_;
    std::int64_t tokens_, width_;
    std::int64_t rows_ = 0;       ///< taken
    const float* head_ = nullptr; ///< the taken rows
    const float* embedding_ = nullptr;
    std::ptrdiff_t head_stride_ = 0, embedding_stride_ = 0;
    std::int64_t row_ = 0;
    kernels::AlignedArray<float> head_scratch_, embedding_scratch_;
};

} // namespace ponderscope
