// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"

#include <memory>
#include <string>
#include <vector>

namespace ponderscope::testing {

/// A sequence of these tokens: ids from 100 on, NLL 0, 1, 2, …
inline std::shared_ptr<SequenceData> sequence_of(const std::vector<std::string>& tokens,
                                                 bool withText = true) {
    auto made = std::make_shared<SequenceData>();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        made->tokens.id.push_back(static_cast<std::int32_t>(100 + i));
        made->tokens.begin.push_back(withText ? made->text.size() : 0);
        if (withText) {
            made->text += tokens[i];
        }
        made->tokens.end.push_back(withText ? made->text.size() : 0);
        made->tokens.nll.push_back(static_cast<float>(i));
        made->tokens.entropy.push_back(1);
        made->tokens.max_probability.push_back(0.5f);
        made->tokens.rank.push_back(1);
        made->tokens.steps.push_back(0);
        made->tokens.flops.push_back(10);
    }
    return made;
}

} // namespace ponderscope::testing
