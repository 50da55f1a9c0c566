// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/source.h"

#include <QString>

#include <cstdint>
#include <vector>

namespace ponderscope::figure {

/// How one token is set in running text.
struct TokenPiece {
    std::int64_t token = 0;
    QString text; ///< the characters that begin in it, without the blanks before them; "␣" and "⏎" stand for
                  ///< a token of blanks alone; empty inside a character
    bool starts_word = false; ///< blanks or a line break stand before it: a line may be broken here
    bool invisible = false;   ///< text is a stand-in (␣, ⏎, an id), to be set softly
    int breaks = 0;           ///< line breaks that follow the token
    int last = 0;     ///< units of text of the character in which the token ends; 0: it ends behind one
    double share = 0; ///< of that character, up to the token's end
};

/// Bytes of a token: its span of the text, else what the trace's vocabulary says, else "#id".
std::string token_bytes_of(const RunRows& run, std::int64_t token);

/// The tokens [first, last) of a run as pieces. A character that several tokens share is printed with the
/// token of its first byte. Control characters and bytes that are no UTF-8 are made visible.
std::vector<TokenPiece> token_pieces(const RunRows& run);

} // namespace ponderscope::figure
