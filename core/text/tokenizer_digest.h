// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/sha256.h"
#include "core/text/added_tokens.h"
#include "core/text/bpe.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ponderscope {

/// The rules that split a text, independent of the form of a tokenizer.json: key order, blanks, omitted
/// defaults, merges as pairs or as lines. app/python/ponderscope/tokenizer_digest.py defines the digest and
/// computes the same value.
struct CuttingRules {
    std::string merges;     ///< SHA-256 of the merges, or of the scores of a Unigram model
    std::string components; ///< canonical JSON of the model's settings, the normalizer and the pre-tokenizer
    bool normalizes = false;

    /// \p tokenizer: an object with "model" (and "merges"), "normalizer" and "pre_tokenizer", as in a
    /// tokenizer.json.
    static CuttingRules of(const nlohmann::json& tokenizer);
};

/// The canonical form of a normalizer or pre-tokenizer. Omits parts without effect. A sequence with one part
/// becomes this part. A longer sequence becomes {"sequence": [...]}.
nlohmann::json canonical_component(const nlohmann::json& part);

/// SHA-256 of the vocabulary, the added tokens and the rules.
std::string content_digest(const TokenTexts& vocabulary, std::vector<AddedToken> added,
                           const CuttingRules& rules);

} // namespace ponderscope
