// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace ponderscope {

enum class FrontCost {
    compute, ///< FLOPs a token; mean steps where some are not known
    steps,
    time, ///< measured: of runs, a replay takes none
};

/// How fronts are drawn.
struct FrontLook {
    FrontCost cost = FrontCost::compute;
    bool bands = false; ///< 95 % bands of the loss against full, where the points have them
    bool log_cost = false, log_perplexity = false;
    friend bool operator==(const FrontLook&, const FrontLook&) = default;
};

} // namespace ponderscope
