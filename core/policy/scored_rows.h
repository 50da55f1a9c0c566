// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"
#include "core/stats/bootstrap.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// A policy at one setting over the scored tokens of a run: a value for each row of a RowLayout.
struct ScoredSetting {
    std::string policy; ///< "entropy:theta=1.37"; its origin, if it is not a policy
    std::vector<double> steps;
    std::vector<double> nll;   ///< nats
    std::vector<double> flops; ///< empty: not known
};

/// The tokens of a replay table that are scored in all given columns, with their layout. Values are of these
/// tokens, or sums over the tokens of each cluster.
class ScoredRows {
public:
    ScoredRows() = default;
    /// \p nll: a value for each token of the table, NaN without a target; none: the run's own.
    explicit ScoredRows(const ReplayTable& table, std::span<const std::span<const float>> nll = {});

    /// Joins the tokens of a cluster to one row if \p options draw whole clusters: settings of a long run then
    /// take little memory. Before the first use.
    void add_up_clusters(const BootstrapOptions& options);

    [[nodiscard]] const std::vector<std::size_t>& tokens() const { return tokens_; } ///< of the table
    [[nodiscard]] const RowLayout& layout() const { return layout_; }
    /// \p column: a value for each token of the table.
    template <typename T>
    [[nodiscard]] std::vector<double> of(const std::vector<T>& column) const {
        std::vector<double> values(layout_.rows());
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            values[cluster_.empty() ? i : cluster_[i]] += static_cast<double>(column[tokens_[i]]);
        }
        return values;
    }
    /// A replay, or a rerun, over the rows.
    [[nodiscard]] ScoredSetting of(const std::string& policy, const ReplayResult& result) const;

private:
    std::vector<std::size_t> tokens_;
    std::vector<std::size_t> cluster_; ///< of each token; empty: a row a token
    RowLayout layout_;
};

/// \p options with the block length of all reports of this run. It does not depend on the policies: chosen
/// from the NLL of the last step and from the total gain of the steps. The same options if they name a
/// length, or if rows are clusters.
BootstrapOptions with_block_of_run(const ReplayTable& table, const ScoredRows& rows,
                                   const BootstrapOptions& options);

} // namespace ponderscope
