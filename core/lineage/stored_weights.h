// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// The matrices of a checkpoint, by names that all backbones share. They are [out, in], fp32. Each request
/// reads the mapped files again. InputError: a tensor whose shape differs from config.json, or with a value
/// that is not finite.
class StoredWeights {
public:
    /// InputError: no layer has query and key weights, or there is no embedding.
    explicit StoredWeights(const Checkpoint& checkpoint);

    [[nodiscard]] std::int64_t width() const { return width_; } ///< d
    [[nodiscard]] std::int64_t vocabulary() const;              ///< rows of the input embedding
    [[nodiscard]] const Checkpoint& checkpoint() const { return checkpoint_; }
    /// Layers with W_q and W_k.
    [[nodiscard]] const std::vector<std::int64_t>& layers() const { return layers_; }

    /// Rows of the input embedding, [rows, d]. A projection into the stack (some OPT models) is applied.
    [[nodiscard]] at::Tensor embedding(std::span<const std::int64_t> rows) const;

    enum class Matrix : std::uint8_t { query, key, value, output, up, gate, down };
    /// [out, in]; undefined if the layer lacks the matrix. Grouped keys and values are not repeated.
    [[nodiscard]] at::Tensor matrix(std::int64_t layer, Matrix which) const;
    /// Keys or values with each head repeated for all query heads that read it.
    [[nodiscard]] at::Tensor repeated(const at::Tensor& heads) const;

private:
    [[nodiscard]] const TensorView* find(const std::string& name) const;
    [[nodiscard]] const TensorView* find_in_layer(std::int64_t layer, const std::string& name) const;
    [[nodiscard]] at::Tensor read(const TensorView& view, std::int64_t rows, std::int64_t columns) const;
    [[nodiscard]] at::Tensor fused(std::int64_t layer, Matrix which) const;

    const Checkpoint& checkpoint_;
    std::int64_t width_ = 0;
    const TensorView* embedding_ = nullptr;
    std::vector<std::int64_t> layers_;
};

/// Tokens that two vocabularies share: their rows in the two embeddings, by ascending row of A.
struct SharedTokens {
    std::vector<std::int64_t> a;
    std::vector<std::int64_t> b;
};

/// Matches tokens by their text in `model.vocab` of tokenizer.json, without `added_tokens`. Leaves out rows
/// beyond \p rows_a and \p rows_b. No value if one checkpoint has no tokenizer.json. InputError: a
/// tokenizer.json without such a vocabulary.
std::optional<SharedTokens> shared_tokens(const Checkpoint& a, std::int64_t rows_a, const Checkpoint& b,
                                          std::int64_t rows_b);

} // namespace ponderscope
