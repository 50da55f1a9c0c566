// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/head_products.h"

#include <cmath>

namespace ponderscope {

using kernels::AlignedArray;

PackedStates HeadProducts::pack(const at::Tensor& states, std::int64_t first_token) const {
    PackedStates packed(static_cast<std::size_t>(groups() * o_.depth * width_), 0.0F);
    for (std::int64_t group = 0; group < groups(); ++group) {
        const float* row = states.const_data_ptr<float>() + (first_token + group * width_) * o_.depth;
        for (std::int64_t j = 0; j < columns(group); ++j, row += o_.depth) {
            float* column = packed.data() + offset(group) + j;
            for (std::int64_t i = 0; i < o_.depth; ++i) {
                column[i * stride(group)] = row[i];
            }
        }
    }
    return packed;
}

void HeadProducts::take(std::int64_t row, std::int64_t rows) {
    row_ = row;
    rows_ = rows;
    head_ = o_.head.rows(o_.k, row, rows, head_scratch_, head_stride_);
    if (!o_.mixture) {
        return;
    }
    if (o_.embedding.same_as(o_.head)) {
        embedding_ = head_;
        embedding_stride_ = head_stride_;
    } else {
        embedding_ = o_.embedding.rows(o_.k, row, rows, embedding_scratch_, embedding_stride_);
    }
}

void HeadProducts::multiply(const PackedStates& states, std::int64_t group, std::int64_t row,
                            std::int64_t rows, const float* table, std::ptrdiff_t table_stride,
                            float* tile) const {
    o_.k.product(table, table_stride, rows, o_.depth, states.data() + offset(group), vectors(group), tile,
                 o_.bias.size() > 0 ? o_.bias.data() + row : nullptr);
    if (o_.scale != 1.0F) {
        for (std::int64_t i = 0; i < rows * stride(group); ++i) {
            tile[i] *= o_.scale;
        }
    }
    if (o_.softcap > 0) {
        for (std::int64_t i = 0; i < rows * stride(group); ++i) {
            tile[i] = o_.softcap * std::tanh(tile[i] / o_.softcap);
        }
    }
}

void HeadProducts::logits(const PackedStates& states, std::int64_t group, float* tile) {
    if (group > 0 || embedding_ == nullptr || embedding_ == head_) {
        multiply(states, group, row_, rows_, head_, head_stride_, tile);
        return;
    }
    // Prefetch the embedding's rows meanwhile: `mix` reads them across, which no hardware prefetcher
    // foresees.
    constexpr std::int64_t step = 8;
    constexpr std::int64_t line = 16; // floats
    for (std::int64_t r = 0; r < rows_; r += step) {
        const auto count = std::min(step, rows_ - r);
        for (std::int64_t i = r; i < r + count; ++i) {
            for (std::int64_t j = 0; j < o_.depth; j += line) {
                __builtin_prefetch(embedding_ + i * embedding_stride_ + j, 0, 2);
            }
        }
        multiply(states, 0, row_ + r, count, head_ + r * head_stride_, head_stride_, tile + r * stride(0));
    }
}

void HeadProducts::logits_of(const PackedStates& states, const std::int64_t* words, float* logits) const {
    AlignedArray<float> all(static_cast<std::size_t>(width_));
    AlignedArray<float> scratch;
    for (std::int64_t token = 0; token < tokens_; ++token) {
        if (words[token] < 0) {
            continue;
        }
        std::ptrdiff_t row_stride = 0;
        const float* row = o_.head.rows(o_.k, words[token], 1, scratch, row_stride);
        multiply(states, token / width_, words[token], 1, row, row_stride, all.data());
        logits[token] = all[static_cast<std::size_t>(token % width_)];
    }
}

void HeadProducts::clear_mixtures(AlignedArray<float>& mixtures) const {
    if (mixtures.size() == 0) {
        mixtures = AlignedArray<float>(static_cast<std::size_t>(groups() * o_.depth * width_));
    }
    mixtures.fill(0);
}

void HeadProducts::mix(std::int64_t group, const float* tile, float* mixtures) const {
    o_.k.mix(embedding_, embedding_stride_, rows_, o_.depth, tile, vectors(group), mixtures + offset(group));
}

void HeadProducts::rescale(std::int64_t group, const float* factors, float* mixtures) const {
    o_.k.rescale(mixtures + offset(group), o_.depth, vectors(group), factors);
}

void HeadProducts::add(std::int64_t group, const float* from, float* mixtures) const {
    o_.k.accumulate(from + offset(group), o_.depth * stride(group), 1, mixtures + offset(group));
}

void HeadProducts::read(std::int64_t token, const float* mixtures, double divisor, float* out) const {
    const auto group = token / width_;
    const float* from = mixtures + offset(group) + token % width_;
    for (std::int64_t i = 0; i < o_.depth; ++i) {
        out[i] = static_cast<float>(from[i * stride(group)] / divisor);
    }
}

} // namespace ponderscope
