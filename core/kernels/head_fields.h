// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/head.h"

#include <array>

namespace ponderscope {

/// All tensors of a HeadResult, for what is done to each of them alike.
constexpr std::array<at::Tensor HeadResult::*, 12> head_result_fields = {&HeadResult::log_sum_exp,
                                                                         &HeadResult::nll,
                                                                         &HeadResult::rank,
                                                                         &HeadResult::entropy,
                                                                         &HeadResult::max_probability,
                                                                         &HeadResult::margin,
                                                                         &HeadResult::argmax,
                                                                         &HeadResult::candidate_ids,
                                                                         &HeadResult::candidate_probabilities,
                                                                         &HeadResult::kl_previous_current,
                                                                         &HeadResult::kl_current_previous,
                                                                         &HeadResult::mixture};

} // namespace ponderscope
