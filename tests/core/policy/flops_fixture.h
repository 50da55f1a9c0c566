// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/flops_model.h"

namespace ponderscope::testing {

/// Costs of two further steps whose parts can be told apart.
inline FlopsModel adaptive_flops(FlopsModel::Visibility visibility = FlopsModel().visibility) {
    FlopsModel model;
    model.visibility = visibility;
    model.steps = {1000, 1000, 1000};
    model.key = 10;
    model.windows = {0, 3};
    model.input = 500;
    model.decisions = {7, 11};
    model.read_out = 103;
    return model;
}

} // namespace ponderscope::testing
