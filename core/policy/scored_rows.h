// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"
#include "core/stats/bootstrap.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// A policy at one setting over the scored tokens of a run, with a value for each row of a RowLayout.
struct ScoredSetting {
    std::string policy; ///< "entropy:theta=1.37", or the origin of the values
    std::vector<double> steps;
    std::vector<double> nll;   ///< nats
    std::vector<double> flops; ///< empty: unknown
};

/// The tokens of a replay table that have a value in all given columns, with their layout. A row is one such
/// token, or after add_up_clusters() the sum over the tokens of a cluster.
class ScoredRows {
public:
    ScoredRows() = default;
    /// \p nll: columns with an NLL for each token of the table, NaN without a target. Empty: the run's NLL.
    explicit ScoredRows(const ReplayTable& table, std::span<const std::span<const float>> nll = {});

    /// If \p options draw whole clusters, joins the tokens of each cluster into one row. Settings of a long
    /// run then take little memory. Call it before of().
    void add_up_clusters(const BootstrapOptions& options);

    [[nodiscard]] const std::vector<std::size_t>& tokens() const { return tokens_; } ///< indices in the table
    [[nodiscard]] const RowLayout& layout() const { return layout_; }
    /// The values of \p column for the rows. \p column has a value for each token of the table.
    template <typename T>
    [[nodiscard]] std::vector<double> of(const std::vector<T>& column) const {
        std::vector<double> values(layout_.rows());
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            values[cluster_.empty() ? i : cluster_[i]] += static_cast<double>(column[tokens_[i]]);
        }
        return values;
    }
    /// A replay or a rerun, reduced to the rows. \p result: steps, nll and flops of each token of the table.
    template <typename Result>
    [[nodiscard]] ScoredSetting of(const std::string& policy, const Result& result) const {
        return {policy, of(result.steps), of(result.nll),
                result.flops.empty() ? std::vector<double>() : of(result.flops)};
    }

private:
    std::vector<std::size_t> tokens_;
    std::vector<std::size_t> cluster_; ///< cluster of each token; empty: each token is a row
    RowLayout layout_;
};

/// \p options with the block length for all reports of this run. The NLL of the last step and its difference
/// to step 0 determine the length, so policies have no effect on it. Returns \p options unchanged if they set
/// a length, or if rows are clusters.
BootstrapOptions with_block_of_run(const ReplayTable& table, const ScoredRows& rows,
                                   const BootstrapOptions& options);

} // namespace ponderscope
