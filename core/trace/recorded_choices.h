// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <string>

namespace ponderscope {

/// What was chosen about a run beside its policy (RunInfo::choices), as the options of `ponderscope record`
/// take it. Empty: the method has no such choice, or an earlier version did not keep it.
struct RecordedChoices {
    std::string kv;            ///< "full", "per_step", "shared", "skip"
    std::string initial_state; ///< "random:SEED", "zero", the name of a file
};
RecordedChoices recorded_choices(const RunInfo& run);

/// The kv of a rerun of \p run with another policy: the run's own, except that where every step runs and
/// exits only choose the read-out there would be nothing to rerun; then exits are taken, `per_step`.
std::string kv_of_rerun(const RunInfo& run);

} // namespace ponderscope
