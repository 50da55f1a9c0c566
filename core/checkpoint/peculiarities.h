// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <string>
#include <vector>

namespace ponderscope {

/// What is unusual about a model, in phrases for people: what somebody who knows the architecture would not
/// take for granted. Empty for the textbook's model.
std::vector<std::string> peculiarities(const ModelConfig& config);

} // namespace ponderscope
