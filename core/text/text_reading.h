// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/text/tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ponderscope {

/// Options for reading a text: start tokens, and special tokens in the text.
struct TextReading {
    enum class Bos : std::uint8_t {
        automatic,   ///< as the tokenizer's files define
        always,      ///< always a start token
        never,       ///< neither start token nor end token
        every_window ///< a start token before every window of the text
    };
    Bos bos = Bos::automatic;
    bool parse_special = true; ///< false: special tokens in the text are plain text

    /// "auto", "always", "never" or "every-window"; InputError for other text.
    static Bos parse_bos(const std::string& text);
    [[nodiscard]] std::string bos_text() const;
    /// InputError: text that is not UTF-8, or a required start token that the tokenizer does not define.
    [[nodiscard]] Encoding encode(const Tokenizer& tokenizer, std::string_view text) const;
    [[nodiscard]] bool adds() const { return bos != Bos::never; }
    friend bool operator==(const TextReading&, const TextReading&) = default;
};

/// The start token that the tokenizer adds, else the start token in its files. InputError: there is none.
std::int32_t require_start_token(const Tokenizer& tokenizer);

} // namespace ponderscope
