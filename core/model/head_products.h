// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/head_table.h"
#include "core/model/kernels/aligned.h"
#include "core/model/kernels/tile.h"
#include "core/model/matrix_unit.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

namespace ponderscope {

/// What the read-out multiplies, and how.
struct HeadOperands {
    enum class Form {
        fp32,       ///< loops over fp32, tables widened
        bf16,       ///< loops over bf16 as it lies; the expected embedding in fp32
        matrix_unit ///< all of it in bf16 on the processor's matrix unit
    };

    const kernels::TileKernels& k = kernels::tile_kernels();
    Form form = Form::fp32;
    std::int64_t depth = 0;
    HeadTable head;
    HeadTable embedding;  ///< of the expected embedding
    bool mixture = false; ///< over the whole vocabulary
    bool library = false; ///< mixes in fp32 by the library's product
    kernels::AlignedArray<float> bias;
    float softcap = 0; ///< c of c·tanh(logit / c); 0: none
    float scale = 1;   ///< of logits, before the softcap

    /// Vectors of tokens side by side in a tile: two fill the matrix unit's registers.
    [[nodiscard]] int vectors() const { return form == Form::matrix_unit ? 2 : k.max_vectors; }
    [[nodiscard]] std::int64_t width() const { return static_cast<std::int64_t>(k.lanes) * vectors(); }
    [[nodiscard]] at::ScalarType state_type() const {
        return form == Form::fp32 ? at::kFloat : at::kBFloat16;
    }
};

/// States of a block of tokens, packed with one token a column, group after group.
struct PackedStates {
    kernels::AlignedArray<float> fp32;
    kernels::AlignedArray<std::uint32_t> bf16_pairs;
};

/// The products of one block of tokens with rows of the head and of the embedding, tile by tile. Tokens lie
/// in groups of a tile's width; those of the last one may be fewer.
class HeadProducts {
public:
    HeadProducts(const HeadOperands& operands, std::int64_t tokens, std::int64_t rows_per_tile);

    [[nodiscard]] std::int64_t groups() const { return (tokens_ + width_ - 1) / width_; }
    [[nodiscard]] std::int64_t columns(std::int64_t group) const {
        return std::min(width_, tokens_ - group * width_);
    }
    [[nodiscard]] int vectors(std::int64_t group) const {
        return static_cast<int>((columns(group) + o_.k.lanes - 1) / o_.k.lanes);
    }

    /// The block's rows of states, which are contiguous and of the operands' type.
    [[nodiscard]] PackedStates pack(const at::Tensor& states, std::int64_t first_token) const;

    /// Chooses the rows of both tables that the next products are of.
    void take(std::int64_t row, std::int64_t rows);
    /// tile[r][j] = logit of the taken row r for token j of the group.
    void logits(const PackedStates& states, std::int64_t group, float* tile);
    /// The logits of one word a token, by the very additions that make them in the tiles; -1: left as it is.
    void logits_of(const PackedStates& states, const std::int64_t* words, float* logits);

    /// Expected embeddings of all groups, set to zero: what the functions below add to.
    void clear_mixtures(kernels::AlignedArray<float>& mixtures) const;
    /// += Σ_r tile[r][j] · embedding of the taken row r. On the matrix unit the weights are rounded to
    /// bfloat16, as the mixture is when it becomes an input: a prediction moves on average no more than
    /// without it.
    void mix(std::int64_t group, const float* tile, float* mixtures);
    /// Multiplies a token's mixture by its factor.
    void rescale(std::int64_t group, const float* factors, float* mixtures) const;
    void add(std::int64_t group, const float* from, float* mixtures) const;
    /// A token's mixture over a divisor.
    void read(std::int64_t token, const float* mixtures, double divisor, float* out) const;

private:
    [[nodiscard]] bool on_unit() const { return o_.form == HeadOperands::Form::matrix_unit; }
    [[nodiscard]] bool tokens_first() const { return on_unit() || o_.library; }
    [[nodiscard]] std::int64_t stride(std::int64_t group) const {
        return static_cast<std::int64_t>(vectors(group)) * o_.k.lanes;
    }
    [[nodiscard]] std::int64_t offset(std::int64_t group) const { return group * o_.depth * width_; }
    void multiply(const PackedStates& states, std::int64_t group, std::int64_t row, std::int64_t rows,
                  const float* table, std::ptrdiff_t table_stride, float* tile);
    void finish(std::int64_t group, std::int64_t rows, const float* bias, float* tile) const;
    void logits_on_unit(const PackedStates& states, const std::int64_t* words, float* logits);

    const HeadOperands& o_;
    std::int64_t tokens_, width_, rows_per_tile_;
    std::int64_t row_ = 0, rows_ = 0; ///< taken
    const float* head_ = nullptr;     ///< in fp32
    const float* embedding_ = nullptr;
    std::ptrdiff_t head_stride_ = 0, embedding_stride_ = 0;
    kernels::AlignedArray<float> head_scratch_, embedding_scratch_;
    kernels::AlignedArray<float> shares_;                            ///< a tile's columns, for the library
    kernels::AlignedArray<std::uint32_t> embedding_pairs_, rounded_; ///< of the matrix unit
    std::int64_t pair_stride_ = 0;                                   ///< of rounded_
    MatrixUnit unit_;
};

} // namespace ponderscope
