// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/text/tokenizer.h"
#include "core/train/recipe.h"

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// One text of a corpus, for training.json.
struct CorpusText {
    std::string name; ///< relative to the recipe's text folder
    std::string sha256;
    std::uint64_t bytes = 0;
    std::int64_t train_tokens = 0;
    std::int64_t held_out_tokens = 0;
};

/// The texts of a recipe as two streams of ids. Texts come in the order of their names; each ends with the
/// recipe's `document_end`.
struct Corpus {
    std::vector<std::int32_t> train;
    std::vector<std::int32_t> held_out;
    std::vector<CorpusText> texts;
    double held_out_bytes_per_token = 0; ///< converts nats per token to bits per byte; 0 without held-out
                                         ///< text
    std::string digest;                  ///< SHA-256 over names, digests of the texts, and tokenizer.json
};

/// Finds, reads and encodes the texts. InputError: a pattern without a match, an empty text, invalid UTF-8,
/// no training text left, or a `document_end` that is not a token. Cancelled.
Corpus load_corpus(const Recipe& recipe, const Tokenizer& tokenizer, const ProgressSink& report = {},
                   const std::stop_token& stop = {});

} // namespace ponderscope
