// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

namespace ponderscope {

/// InputError: this build does not run the config. The message names what it runs. Cheap: no weights are
/// needed.
void require_runnable(const ModelConfig& config);

} // namespace ponderscope
