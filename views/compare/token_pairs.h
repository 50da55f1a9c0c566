// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"
#include "core/stats/run_comparison.h"

namespace ponderscope {

/// Token against token: NLL of the first two runs, every \p stride-th token, with the line where both are
/// equal. The points are the last series.
Chart token_pairs_chart(const RunComparison& comparison, std::size_t stride = 1);

} // namespace ponderscope
