// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/database.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ponderscope {

/// A part of a run with its CRC-32. A part is the bytes of a token id, a text, the token rows of a sequence,
/// or a chunk.
struct DigestedPart {
    std::string name;                ///< "the text of sequence 0"
    std::optional<std::int64_t> due; ///< the stored CRC-32; absent: not stored
    std::uint32_t found = 0;
    std::int64_t sequence = -1; ///< number of the sequence; -1: bytes of a token id
    bool is_chunk = false;
};

/// Computes the CRC-32 of each part of a run and calls \p visit. Skips token ids without a stored CRC-32.
void each_digest(Database& database, std::int64_t run, const std::function<void(const DigestedPart&)>& visit);

} // namespace ponderscope
