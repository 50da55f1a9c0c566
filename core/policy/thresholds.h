// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"

#include <vector>

namespace ponderscope {

/// Thresholds of a kind's first parameter that are worth trying on this run, ascending: quantiles of the
/// recorded signal, so that each is passed by about as many tokens as its neighbour; every whole number for
/// steps; even distances for rates; of five digits. For `learned` also the model's own threshold. Empty for
/// kinds without a parameter. At most \p most values beside that.
std::vector<double> threshold_values(const PolicyKind& kind, const ReplayTable& table, int most);

/// The policy of that kind at that threshold; other parameters as preset.
PolicySpec policy_at(const PolicyKind& kind, double threshold);

} // namespace ponderscope
