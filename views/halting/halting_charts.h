// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/data_table.h"
#include "core/stats/halting.h"
#include "views/common/selection.h"
#include "views/chart/chart.h"

#include <QString>

#include <array>
#include <string>

namespace ponderscope {

inline LabelPlace place_of(Attribution attribution) {
    return attribution == Attribution::predicted ? LabelPlace::prediction : LabelPlace::token;
}

enum class HaltingChart { steps, nll, gates, entropy, probability };
inline constexpr std::array all_halting_charts{HaltingChart::steps, HaltingChart::nll, HaltingChart::gates,
                                               HaltingChart::entropy, HaltingChart::probability};
/// \p unit: RunInfo::step_unit.
QString halting_title(HaltingChart chart, const std::string& unit = "step");
/// Token types with their counts and means.
DataTable types_table(const HaltingStats& stats);
Chart halting_chart(HaltingChart kind, const HaltingStats& stats);

} // namespace ponderscope
