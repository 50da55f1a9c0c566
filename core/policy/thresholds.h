// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"

#include <vector>

namespace ponderscope {

/// Useful thresholds for a kind's first parameter on this run, ascending, rounded to five digits.
/// For signals: at most \p most quantiles of the recorded values, so that about equally many tokens lie
/// between two thresholds. For rates: at most \p most, at even distances. For steps: all integers. For
/// `learned`, the model's own threshold is added. Empty for kinds without a parameter.
std::vector<double> threshold_values(const PolicyKind& kind, const ReplayTable& table, int most);

/// The policy of this kind at this threshold, with defaults for the other parameters.
PolicySpec policy_at(const PolicyKind& kind, double threshold);

} // namespace ponderscope
