// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/scored_rows.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// Scored rows in two halves: settings are chosen on one and reported on the other, so that no threshold is
/// judged on the text that it was found on.
struct SplitRows {
    ScoredRows choosing, reporting;
    std::string words; ///< "600 clusters chose, the other 600 are reported"
};

/// Half of the clusters each, at random by \p seed: the clusters are ordered by S(seed, number), every second
/// one chooses. A single cluster is cut in the middle, its first part chooses. InputError: fewer than two
/// rows.
SplitRows split_rows(const ScoredRows& all, std::uint64_t seed);

} // namespace ponderscope
