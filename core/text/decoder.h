// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// The "decoder" of a tokenizer.json: ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, BPEDecoder
/// and sequences of them. InputError names any other type. Invalid UTF-8 bytes stay unchanged.
class TokenDecoder {
public:
    TokenDecoder() = default; ///< joins tokens with spaces, as the library `tokenizers` does
    static TokenDecoder parse(const std::optional<JsonObject>& json); ///< InputError

    /// Decodes token texts of the vocabulary.
    [[nodiscard]] std::string decode(std::vector<std::string> tokens) const;
    /// Decodes a single token, without the steps that change the beginning or end of a text.
    [[nodiscard]] std::string decode_one(std::string_view token) const;

private:
    /// \p whole_text: include the steps that change the beginning or end of a text.
    using Step = std::function<void(std::vector<std::string>& tokens, bool whole_text)>;
    void add(const JsonObject& object, const std::string& type);
    [[nodiscard]] std::vector<std::string> run(std::vector<std::string> tokens, bool whole_text) const;
    std::vector<Step> steps_;
    bool present_ = false;
};

} // namespace ponderscope
