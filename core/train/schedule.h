// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace ponderscope {

/// How the learning rate goes over the optimiser's steps.
struct Schedule {
    double peak = 1e-3; ///< learning rate at the end of the warm-up
    std::int64_t warmup_steps = 0;
    std::int64_t steps = 0;      ///< of the whole training; the last step ends the cosine
    double final_fraction = 0.1; ///< learning rate of the last step over the peak
};

/// Learning rate of step \p step, counted from 0. Linear warm-up: step i of w has peak (i + 1) / w. Then half
/// a cosine from the peak at the last step of the warm-up to peak * final_fraction at the last step of the
/// training (Loshchilov and Hutter 2017, without restarts). Steps beyond the end stay at the final value.
double learning_rate(const Schedule& schedule, std::int64_t step);

} // namespace ponderscope
