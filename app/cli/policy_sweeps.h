// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy.h"

#include <string>
#include <vector>

namespace ponderscope::cli {

/// Returns `full`, then the policies in the given order, each with the settings of its sweeps
/// ([KIND:]KEY=VALUES). A policy that already sets the swept key also keeps its own row. \p notices: policies
/// to which a sweep of "threshold" does not apply. InputError: a key that no policy has, or an invalid spec.
std::vector<PolicySpec> read_policies(const std::vector<std::string>& policies,
                                      const std::vector<std::string>& sweeps,
                                      std::vector<std::string>& notices);

} // namespace ponderscope::cli
