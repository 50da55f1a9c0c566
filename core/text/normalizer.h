// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/text/normalized_text.h"

#include <functional>
#include <string>
#include <vector>

namespace ponderscope {

/// The "normalizer" of a tokenizer.json: NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend,
/// Replace, Precompiled and sequences of them. InputError names any other type.
class Normalizer {
public:
    Normalizer() = default; ///< changes nothing
    /// \p json: the value of "normalizer", if there is one. InputError.
    static Normalizer parse(const std::optional<JsonObject>& json);

    void apply(NormalizedText& text) const {
        for (const Step& step : steps_) {
            step(text);
        }
    }

private:
    using Step = std::function<void(NormalizedText& text)>;
    void add(const JsonObject& object, const std::string& type);
    std::vector<Step> steps_;
};

} // namespace ponderscope
