// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// A part of a sample.
struct SampleHalf {
    std::vector<std::size_t> rows; ///< of the sample
    RowLayout layout;

    /// \p column: a value for each row of the sample.
    [[nodiscard]] std::vector<double> of(const std::vector<double>& column) const;
};

/// A sample in two halves: settings are chosen on one half and reported on the other, so that no threshold is
/// judged on the text for which it was chosen.
struct SplitRows {
    SampleHalf choosing, reporting;
    std::string words; ///< "600 clusters chose, the other 600 are reported"
};

/// Half of the clusters each, at random by \p seed: the clusters are ordered by S(seed, number), every second
/// one chooses. A single cluster is cut in the middle, its first part chooses. InputError: fewer than two
/// tokens.
SplitRows split_rows(const RowLayout& all, std::uint64_t seed);

} // namespace ponderscope
