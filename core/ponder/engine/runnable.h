// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

namespace ponderscope {

/// InputError if this build does not run the config; the message names the supported ones. Needs no weights.
void require_runnable(const ModelConfig& config);

} // namespace ponderscope
