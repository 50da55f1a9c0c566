// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/database.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ponderscope {

/// A part of a run with its CRC-32: the bytes of a token id, a text, the token rows of a sequence, or a
/// chunk.
struct DigestedPart {
    std::string name;                ///< "the text of sequence 0"
    std::optional<std::int64_t> due; ///< the stored CRC-32; absent: not stored
    std::uint32_t found = 0;
    std::int64_t sequence = -1; ///< number of the sequence; -1: bytes of an id
    bool is_chunk = false;
};

/// Calls \p visit for each part of a run with the newly computed digest. Skips ids without a stored digest.
void each_digest(Database& database, std::int64_t run, const std::function<void(const DigestedPart&)>& visit);

} // namespace ponderscope
