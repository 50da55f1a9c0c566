// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay_scan.h"
#include "core/stats/bootstrap.h"

#include <cstddef>
#include <span>
#include <vector>

namespace ponderscope {

/// The rows of a replay table that have a target in every one of some columns, and how they lie.
struct ScoredRows {
    std::vector<std::size_t> rows;
    TokenLayout layout;

    ScoredRows() = default;
    /// \p nll: a value for each row of the table, NaN without a target; none: the run's own.
    explicit ScoredRows(const ReplayTable& table, std::span<const std::span<const float>> nll = {});

    template <typename T>
    [[nodiscard]] std::vector<double> of(const std::vector<T>& column) const {
        std::vector<double> values;
        values.reserve(rows.size());
        for (const std::size_t row : rows) {
            values.push_back(static_cast<double>(column[row]));
        }
        return values;
    }
    /// A replay, or a rerun, over the rows.
    [[nodiscard]] ScoredSetting of(const std::string& policy, const ReplayResult& result) const;
};

/// \p options with the length of blocks that all reports of this run have, whatever policies they are of:
/// chosen from the NLL of the last step and from what the steps gain together. The same options where they
/// name a length.
BootstrapOptions with_block_of_run(const ReplayTable& table, const ScoredRows& rows,
                                   const BootstrapOptions& options);

} // namespace ponderscope
