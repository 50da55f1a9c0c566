// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <cstdint>
#include <string_view>

namespace ponderscope {

/// The appearance of one token on the screen.
struct TokenText {
    QString text;             ///< the text to draw; never empty
    bool spaceBefore = false; ///< one leading space became a gap
    bool special = false;     ///< soft colour: control characters, only blanks, parts of characters, ids
    bool breakAfter = false;  ///< contains a newline, so the line ends here
    bool breakBefore = false; ///< a line may begin here without a space (scripts without spaces)
    bool ideograph = false;   ///< begins with an ideograph: a line may break before it
};

/// \p bytes: the characters that begin in the token (CharacterSpan). Empty for a run with ids only and for
/// tokens without text (a start token). In this case the result is \p label, or the id if \p label is empty.
TokenText token_text(std::string_view bytes, std::int32_t id, bool idsOnly, const QString& label = {});

} // namespace ponderscope
