// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/head_products.h"

#include <cmath>

namespace ponderscope {

using kernels::AlignedArray;

HeadProducts::HeadProducts(const HeadOperands& operands, std::int64_t tokens, std::int64_t rows_per_tile)
    : o_(operands), tokens_(tokens), width_(operands.width()), rows_per_tile_(rows_per_tile) {
    if (on_unit() && o_.mixture) {
        pair_stride_ = (rows_per_tile + 31) / 32 * 16;
        const auto of = [](std::int64_t count) {
            return AlignedArray<std::uint32_t>(static_cast<std::size_t>(count));
        };
        embedding_pairs_ = of((rows_per_tile + 1) / 2 * o_.depth);
        rounded_ = of(width_ * pair_stride_);
    } else if (o_.library && o_.mixture) {
        shares_ = AlignedArray<float>(static_cast<std::size_t>(width_ * rows_per_tile_));
    }
}

PackedStates HeadProducts::pack(const at::Tensor& states, std::int64_t first_token) const {
    const auto size = static_cast<std::size_t>(groups() * o_.depth * width_);
    const bool pairs = o_.form != HeadOperands::Form::fp32;
    PackedStates packed;
    if (pairs) {
        packed.bf16_pairs = AlignedArray<std::uint32_t>(size / 2);
    } else {
        packed.fp32 = AlignedArray<float>(size, 0.0F);
    }
    for (std::int64_t group = 0; group < groups(); ++group) {
        const auto element = (first_token + group * width_) * o_.depth;
        if (pairs) {
            o_.k.pair_columns(static_cast<const std::uint16_t*>(states.const_data_ptr()) + element, o_.depth,
                              columns(group), o_.depth / 2, stride(group),
                              packed.bf16_pairs.data() + offset(group) / 2);
            continue;
        }
        const float* row = static_cast<const float*>(states.const_data_ptr()) + element;
        for (std::int64_t j = 0; j < columns(group); ++j, row += o_.depth) {
            float* column = packed.fp32.data() + offset(group) + j;
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
    if (o_.form == HeadOperands::Form::fp32) {
        head_ = o_.head.rows(o_.k, row, rows, head_scratch_, head_stride_);
    }
    if (!o_.mixture) {
        return;
    }
    if (on_unit()) {
        o_.k.pair_rows(o_.embedding.halves(row), o_.embedding.stride(), rows, o_.depth,
                       embedding_pairs_.data());
    } else if (head_ != nullptr && o_.embedding.same_as(o_.head)) {
        embedding_ = head_;
        embedding_stride_ = head_stride_;
    } else {
        embedding_ = o_.embedding.rows(o_.k, row, rows, embedding_scratch_, embedding_stride_);
    }
}

void HeadProducts::multiply(const PackedStates& states, std::int64_t group, std::int64_t row,
                            std::int64_t rows, const float* table, std::ptrdiff_t table_stride, float* tile) {
    const float* bias = o_.bias.size() > 0 ? o_.bias.data() + row : nullptr;
    if (o_.form == HeadOperands::Form::fp32) {
        o_.k.product(table, table_stride, rows, o_.depth, states.fp32.data() + offset(group), vectors(group),
                     tile, bias);
    } else if (o_.form == HeadOperands::Form::bf16) {
        o_.k.product_bf16(o_.head.halves(row), o_.head.stride(), rows, o_.depth / 2,
                          states.bf16_pairs.data() + offset(group) / 2, vectors(group), tile, bias);
    } else {
        unit_.multiply({o_.head.halves(row), rows, o_.head.stride()}, o_.depth,
                       states.bf16_pairs.data() + offset(group) / 2, stride(group), tile, false);
        finish(group, rows, bias, tile);
        return;
    }
    finish(group, rows, nullptr, tile);
}

void HeadProducts::finish(std::int64_t group, std::int64_t rows, const float* bias, float* tile) const {
    const auto width = stride(group);
    if (bias != nullptr) {
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t j = 0; j < width; ++j) {
                tile[r * width + j] += bias[r];
            }
        }
    }
    if (o_.scale != 1.0F) {
        for (std::int64_t i = 0; i < rows * width; ++i) {
            tile[i] *= o_.scale;
        }
    }
    if (o_.softcap > 0) {
        for (std::int64_t i = 0; i < rows * width; ++i) {
            tile[i] = o_.softcap * std::tanh(tile[i] / o_.softcap);
        }
    }
}

void HeadProducts::logits(const PackedStates& states, std::int64_t group, float* tile) {
    if (group > 0 || embedding_ == nullptr || embedding_ == head_ || o_.library) {
        multiply(states, group, row_, rows_, head_, head_stride_, tile);
        return;
    }
    // Meanwhile the embedding's rows are called into the cache: our `mix` goes through them across, which no
    // hardware prefetcher foresees.
    constexpr std::int64_t step = 8;
    constexpr std::int64_t line = 16; // floats
    for (std::int64_t r = 0; r < rows_; r += step) {
        const auto count = std::min(step, rows_ - r);
        for (std::int64_t i = r; i < r + count; ++i) {
            for (std::int64_t j = 0; j < o_.depth; j += line) {
                __builtin_prefetch(embedding_ + i * embedding_stride_ + j, 0, 2);
            }
        }
        multiply(states, 0, row_ + r, count, head_ == nullptr ? nullptr : head_ + r * head_stride_,
                 head_stride_, tile + r * stride(0));
    }
}

void HeadProducts::logits_of(const PackedStates& states, const std::int64_t* words, float* logits) {
    if (on_unit()) {
        logits_on_unit(states, words, logits);
        return;
    }
    AlignedArray<float> all(static_cast<std::size_t>(width_));
    AlignedArray<float> scratch;
    for (std::int64_t token = 0; token < tokens_; ++token) {
        if (words[token] < 0) {
            continue;
        }
        std::ptrdiff_t row_stride = 0;
        const float* row = o_.form == HeadOperands::Form::fp32
                               ? o_.head.rows(o_.k, words[token], 1, scratch, row_stride)
                               : nullptr;
        multiply(states, token / width_, words[token], 1, row, row_stride, all.data());
        logits[token] = all[static_cast<std::size_t>(token % width_)];
    }
}

/// A group's words and tokens at once: the products of a word with its own token are on the diagonal.
void HeadProducts::logits_on_unit(const PackedStates& states, const std::int64_t* words, float* logits) {
    AlignedArray<std::uint16_t> rows(static_cast<std::size_t>(width_ * o_.depth), 0);
    AlignedArray<float> bias(static_cast<std::size_t>(width_), 0.0F);
    AlignedArray<float> tile(static_cast<std::size_t>(width_ * width_));
    for (std::int64_t group = 0; group < groups(); ++group) {
        const std::int64_t* own = words + group * width_;
        for (std::int64_t j = 0; j < columns(group); ++j) {
            if (own[j] >= 0) {
                std::copy_n(o_.head.halves(own[j]), o_.depth, rows.data() + j * o_.depth);
                bias[static_cast<std::size_t>(j)] =
                    o_.bias.size() > 0 ? o_.bias[static_cast<std::size_t>(own[j])] : 0;
            }
        }
        unit_.multiply({rows.data(), stride(group), o_.depth}, o_.depth,
                       states.bf16_pairs.data() + offset(group) / 2, stride(group), tile.data(), false);
        finish(group, stride(group), o_.bias.size() > 0 ? bias.data() : nullptr, tile.data());
        for (std::int64_t j = 0; j < columns(group); ++j) {
            if (own[j] >= 0) {
                logits[group * width_ + j] = tile[static_cast<std::size_t>(j * stride(group) + j)];
            }
        }
    }
}

// Mixtures of a group lie as [depth][tokens], but for the library's products as [tokens][depth].

void HeadProducts::clear_mixtures(AlignedArray<float>& mixtures) const {
    if (mixtures.size() == 0) {
        mixtures = AlignedArray<float>(static_cast<std::size_t>(groups() * o_.depth * width_));
    }
    mixtures.fill(0);
}

void HeadProducts::mix(std::int64_t group, const float* tile, float* mixtures) {
    float* out = mixtures + offset(group);
    if (!tokens_first()) {
        o_.k.mix(embedding_, embedding_stride_, rows_, o_.depth, tile, vectors(group), out);
        return;
    }
    if (o_.library) {
        o_.k.columns(tile, rows_, vectors(group), rows_per_tile_, shares_.data());
        multiply_fp32(shares_.data(), rows_per_tile_, stride(group), rows_, embedding_, embedding_stride_,
                      o_.depth, out);
        return;
    }
    o_.k.round_columns(tile, rows_, vectors(group), pair_stride_, rounded_.data());
    unit_.multiply({rounded_.data(), stride(group), 2 * pair_stride_}, (rows_ + 1) / 2 * 2,
                   embedding_pairs_.data(), o_.depth, out, true);
}

void HeadProducts::rescale(std::int64_t group, const float* factors, float* mixtures) const {
    float* out = mixtures + offset(group);
    if (!tokens_first()) {
        o_.k.rescale(out, o_.depth, vectors(group), factors);
        return;
    }
    for (std::int64_t j = 0; j < columns(group); ++j) {
        const float factor = factors[j];
        if (factor != 1) {
            std::transform(out + j * o_.depth, out + (j + 1) * o_.depth, out + j * o_.depth,
                           [factor](float x) { return factor * x; });
        }
    }
}

void HeadProducts::add(std::int64_t group, const float* from, float* mixtures) const {
    o_.k.accumulate(from + offset(group), o_.depth * stride(group), 1, mixtures + offset(group));
}

void HeadProducts::read(std::int64_t token, const float* mixtures, double divisor, float* out) const {
    const auto group = token / width_;
    const auto column = token % width_;
    const auto step = tokens_first() ? 1 : stride(group);
    const float* from = mixtures + offset(group) + (tokens_first() ? column * o_.depth : column);
    for (std::int64_t i = 0; i < o_.depth; ++i) {
        out[i] = static_cast<float>(from[i * step] / divisor);
    }
}

} // namespace ponderscope
