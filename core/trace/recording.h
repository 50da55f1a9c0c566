// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// What a run was begun with.
struct Recording {
    RunInfo run;
    std::vector<SignalInfo> signals;
    std::int64_t batch = 0; ///< ShardInfo::batch; 0: not known
};

/// In which respect two recordings are not of one run: "policy learned, and policy full". Empty: in none.
/// Looks at what the numbers depend on and at what is kept of them, not at names, times and totals.
std::string difference_of_recordings(const Recording& one, const Recording& other);

} // namespace ponderscope
