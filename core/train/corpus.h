// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/text/tokenizer.h"
#include "core/train/recipe.h"

#include <cstdint>
#include <span>
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
    double held_out_bytes_per_token = 0; ///< bits per byte = nats per token / ln 2 / this number; 0: no text
    std::string digest;                  ///< SHA-256 over names, digests of the texts, and tokenizer.json
};

/// Finds, reads and encodes the texts. InputError: a pattern without a match, an empty text, invalid UTF-8,
/// no training text left, or a `document_end` that is not a token. Cancelled.
Corpus load_corpus(const Recipe& recipe, const Tokenizer& tokenizer, const ProgressSink& report = {},
                   const std::stop_token& stop = {});

/// Chooses the training tokens and their order: a pure function of seed and counter, so that a resumed
/// training sees the same tokens as an uninterrupted one.
///
/// The stream is cut into windows of `context + 1` tokens. Neighbouring windows share one token, because each
/// input needs a target. Each epoch cuts at a new offset below `context` and visits every window once, in a
/// new order. An epoch omits fewer than 2 * `context` tokens at the ends of the stream. With \p shifted
/// and size >= 2 * `context`, no epoch uses the last (size mod `context`) tokens. Without \p shifted every
/// epoch cuts at multiples of `context`, so that texts of exactly this length stay whole.
class ContextSampler {
public:
    /// \p stream must outlive the sampler. InputError: fewer than context + 1 tokens.
    ContextSampler(std::span<const std::int32_t> stream, std::int64_t context, std::uint64_t seed,
                   bool shifted = true);

    [[nodiscard]] std::int64_t windows_an_epoch() const { return windows_; }
    /// Window number \p n, counted from 0 over all epochs: context + 1 ids of the stream.
    [[nodiscard]] std::span<const std::int32_t> window(std::uint64_t n);

private:
    void begin_epoch(std::uint64_t epoch);

    std::span<const std::int32_t> stream_;
    std::int64_t context_;
    std::uint64_t seed_;
    bool shifted_;
    std::int64_t windows_ = 0;
    std::uint64_t epoch_ = 0;
    std::int64_t phase_ = 0;
    std::vector<std::uint32_t> order_;
};

/// The windows for the held-out NLL: consecutive from the start of the stream, or evenly spread if there are
/// more than \p most (0: all). Omits a last piece that is shorter than a window. Returns the position of each
/// window's first token.
std::vector<std::int64_t> held_out_windows(std::int64_t stream_tokens, std::int64_t context,
                                           std::int64_t most);

} // namespace ponderscope
