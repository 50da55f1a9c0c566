// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ponderscope {

/// Tokens that two vocabularies share: their rows in the two embeddings, by ascending row of A.
struct SharedTokens {
    std::vector<std::int64_t> a;
    std::vector<std::int64_t> b;
};

/// By the text of the token as `model.vocab` of tokenizer.json writes it, without `added_tokens`; rows beyond
/// \p rows_a and \p rows_b are left out. Nothing where one of the two has no tokenizer.json. InputError: a
/// file without such a vocabulary.
std::optional<SharedTokens> shared_tokens(const Checkpoint& a, std::int64_t rows_a, const Checkpoint& b,
                                          std::int64_t rows_b);

} // namespace ponderscope
