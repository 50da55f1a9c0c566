// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/halting.h"
#include "views/chart/chart.h"

#include <QString>

#include <string>

namespace ponderscope {

enum class HaltingChart { steps, nll, gates, entropy, probability };
/// The title of a chart. \p unit: RunInfo::step_unit.
QString halting_title(HaltingChart chart, const std::string& unit = "step");
/// The shares of tokens that stopped at each step.
Chart steps_chart(const std::vector<std::int64_t>& counts, const std::string& unit);
Chart halting_chart(HaltingChart kind, const HaltingStats& stats);

} // namespace ponderscope
