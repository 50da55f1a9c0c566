// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ponderscope {

double learning_rate(const Schedule& schedule, std::int64_t step) {
    if (step < schedule.warmup_steps) {
        return schedule.peak * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
    }
    const std::int64_t begin = std::max<std::int64_t>(schedule.warmup_steps - 1, 0);
    const std::int64_t end = schedule.steps - 1;
    if (end <= begin) {
        return schedule.peak;
    }
    const double done = std::min(1.0, static_cast<double>(step - begin) / static_cast<double>(end - begin));
    const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * done));
    return schedule.peak * (schedule.final_fraction + (1.0 - schedule.final_fraction) * cosine);
}

} // namespace ponderscope
