// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ponderscope::testing {

/// What write_sample_trace makes up: English sentences from a seeded grammar, numbers that behave as those of
/// a model do (rare and long words are hard, pondering helps them most), no model behind them.
struct SampleTrace {
    std::uint64_t seed = 1;
    std::int64_t sequences = 9;
    std::int64_t tokens = 1204; ///< of a sequence
    bool secondRun = true;      ///< a vanilla run over the same text beside the adaptive one
    bool withSignals = true;    ///< per-step signals and candidates; false: as recorded with --record basic
    bool withText = true;       ///< false: ids only
    bool withDepth = false; ///< depth-attention weights of four layers and two KV heads, layer 2 content-free
    bool withAttention = false; ///< sequence attention of layers 2 and 5, heads 0 and 3: sample_attention
    bool complete = true;       ///< false: the last run's last sequence is left open, as after a crash
    std::vector<std::string> texts{}; ///< instead of the grammar: one sequence each, tokens cut as below
};

/// One token's bytes each; together they are the text. Words carry the space before them, long words are cut
/// in two, punctuation and newlines stand alone, characters beyond U+FFFF are cut in the middle, as
/// byte-level BPE does.
std::vector<std::string> cut_into_tokens(const std::string& text);

/// Runs "adaponderlm-1m" (K = 3, steps vary) and "vanilla-1m" (K = 0). Overwrites nothing: an existing trace
/// gets more runs.
/// The weight that a made-up token gives the one so many tokens back, of the recorded layers and heads by
/// number in the recording; 0 beyond sample_attention_reach.
float sample_attention(std::int64_t step, std::int64_t layer, std::int64_t head, std::int64_t back);
inline constexpr std::int64_t sample_attention_reach = 32;

void write_sample_trace(const std::filesystem::path& path, const SampleTrace& what = {});

} // namespace ponderscope::testing
