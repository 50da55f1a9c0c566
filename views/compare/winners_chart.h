// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/run_comparison.h"
#include "views/chart/chart.h"

namespace ponderscope {

Chart winners_chart(const Winners& winners);

/// How many tokens have which NLL in the first run and in \p second.
Chart token_density_chart(const RunComparison& comparison, std::size_t second = 1);

} // namespace ponderscope
