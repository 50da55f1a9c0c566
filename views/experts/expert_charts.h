// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/expert_use.h"
#include "views/chart/chart.h"

#include <cstdint>
#include <vector>

namespace ponderscope {

/// Load of every expert by layer: the share of tokens that chose the expert.
Chart experts_chart(const ExpertUse& use);
/// Agreement of two runs' choices of experts, by layer.
Chart expert_agreement_chart(const std::vector<ExpertAgreement>& layers);

/// Weights of the chosen experts of one layer, [token * experts + expert]; NaN if a token did not choose the
/// expert. \p weights: in the order of ExpertRows::ids. \p step: the step to show for each token.
std::vector<float> expert_map(const ExpertRows& rows, const std::vector<float>& weights, std::int64_t experts,
                              std::int64_t layer, const std::vector<std::int32_t>& step);

} // namespace ponderscope
