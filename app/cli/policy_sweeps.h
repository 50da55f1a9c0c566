// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy.h"

#include <string>
#include <vector>

namespace ponderscope::cli {

/// Full, then the policies in the order in which they were named, each with the settings of its sweeps
/// ([KIND:]KEY=VALUES). A policy that is named with the swept number keeps its row. \p notices: policies that
/// a sweep of "threshold" does not fit. InputError: a key that no policy has, a wrong spec.
std::vector<PolicySpec> read_policies(const std::vector<std::string>& policies,
                                      const std::vector<std::string>& sweeps,
                                      std::vector<std::string>& notices);

} // namespace ponderscope::cli
