// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

namespace ponderscope {

/// Throws InputError, naming what runs, when this build does not run the config. Cheap: no weights are
/// needed.
void require_runnable(const ModelConfig& config);

} // namespace ponderscope
