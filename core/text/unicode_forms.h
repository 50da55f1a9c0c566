// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/text/normalized_text.h"

#include <cstdint>

namespace ponderscope {

/// Normalisation forms of Unicode Standard Annex 15.
enum class UnicodeForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// Edits are only the characters that the form changes, and the characters that combine with them.
void normalize_unicode(NormalizedText& normalized, UnicodeForm form);

} // namespace ponderscope
