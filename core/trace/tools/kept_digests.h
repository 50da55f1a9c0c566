// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/database.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ponderscope {

/// A part of a run with a CRC-32: a word, a text, the token rows of a sequence, a chunk.
struct DigestedPart {
    std::string name;                ///< "the text of sequence 0"
    std::optional<std::int64_t> due; ///< kept with it; nothing: not kept
    std::uint32_t found = 0;
    std::int64_t sequence = -1; ///< its number; -1: a word
    bool is_chunk = false;
};

/// Calls \p visit with each part of a run, with its digest computed again. Words without a digest are left
/// out.
void each_digest(Database& database, std::int64_t run, const std::function<void(const DigestedPart&)>& visit);

} // namespace ponderscope
