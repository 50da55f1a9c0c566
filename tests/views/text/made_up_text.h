// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/support/packed.h"
#include "views/common/trace_data.h"

#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace ponderscope::testing {

/// A sequence of these tokens: ids from 100 on, NLL 0, 1, 2, …
inline std::shared_ptr<SequenceData> sequence_of(const std::vector<std::string>& tokens,
                                                 bool withText = true) {
    auto made = std::make_shared<SequenceData>();
    made->tokens = equal_tokens(tokens.size());
    std::iota(made->tokens.id.begin(), made->tokens.id.end(), 100);
    std::iota(made->tokens.nll.begin(), made->tokens.nll.end(), 0.0F);
    for (std::size_t i = 0; withText && i < tokens.size(); ++i) {
        made->tokens.begin[i] = made->text.size();
        made->text += tokens[i];
        made->tokens.end[i] = made->text.size();
    }
    return made;
}

} // namespace ponderscope::testing
