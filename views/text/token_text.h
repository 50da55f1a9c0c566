// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <cstdint>
#include <string_view>

namespace ponderscope {

/// How one token is written on the screen.
struct TokenText {
    QString text;             ///< the drawn text; never empty
    bool spaceBefore = false; ///< one leading space became a gap
    bool special =
        false; ///< drawn softly: control characters, bare white space, bytes of a cut character, ids
    bool breakAfter = false;  ///< holds a newline: the line ends here
    bool breakBefore = false; ///< a line may start here although no space precedes (scripts without spaces)
    bool ideograph = false;   ///< breakBefore is true after any character: no part of a visible character
};

/// \p bytes: the characters that begin in the token (CharacterSpan); empty for a run on ids and for tokens
/// without text (a start token), which show \p label, or their id when it is empty.
TokenText token_text(std::string_view bytes, std::int32_t id, bool idsOnly, const QString& label = {});

} // namespace ponderscope
