// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/source.h"

#include <QString>

#include <cstdint>
#include <vector>

namespace ponderscope::figure {

/// The typesetting of one token in running text.
struct TokenPiece {
    std::int64_t token = 0;
    QString text; ///< characters that begin in the token, without leading blanks; "␣" or "⏎" for blanks only
    bool starts_word = false; ///< blanks or a line break precede the token, so a line may break here
    bool invisible = false;   ///< text is a placeholder (␣, ⏎, an id) in the soft colour
    int breaks = 0;           ///< line breaks that follow the token
    int last = 0;     ///< UTF-16 length of the character that the token splits at its end; 0: splits none
    double share = 0; ///< the share of this character before the token's end
};

/// Bytes of a token: its span of the text, else its entry in the trace's vocabulary, else "#id".
std::string token_bytes_of(const RunRows& run, std::int64_t token);

/// The tokens [first, last) of a run as pieces. A character that several tokens share belongs to the token of
/// its first byte. Makes control characters and invalid UTF-8 visible.
std::vector<TokenPiece> token_pieces(const RunRows& run);

} // namespace ponderscope::figure
