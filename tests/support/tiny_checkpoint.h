// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>

namespace ponderscope::testing {

/// A GPT-NeoX checkpoint small enough to be made in a test: seeded random weights, 256 byte-level tokens with
/// a tokenizer.json that turns every byte into one token, so that any UTF-8 text can be scored.
struct TinyCheckpoint {
    std::int64_t layers = 2;
    std::int64_t hidden_size = 16;
    std::int64_t heads = 2;
    std::int64_t vocab_size = 256;
    std::int64_t max_positions = 64;
    std::int64_t pondering_steps = 0; ///< > 0: PonderLM
    std::uint64_t seed = 1;

    void write(const std::filesystem::path& folder, bool with_tokenizer = true) const;
};

} // namespace ponderscope::testing
