// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ponderscope {

/// The arrangement of a sample's tokens in stretches of consecutive tokens. Each stretch lies in a cluster: a
/// sequence, or its group (a document, an author, a problem). Tokens of different clusters count as
/// independent. Tokens of one cluster do not.
struct TokenLayout {
    std::vector<std::int64_t> stretches;  ///< lengths, at least 1; the sum is the number of tokens
    std::vector<std::int64_t> cluster_of; ///< the cluster of each stretch, from 0

    TokenLayout() = default;
    /// Each stretch is a separate cluster.
    TokenLayout(std::vector<std::int64_t> lengths); // NOLINT(google-explicit-constructor)
    TokenLayout(std::initializer_list<std::int64_t> lengths)
        : TokenLayout(std::vector<std::int64_t>(lengths)) {}

    /// Appends a token of \p cluster. \p follows: in the text, the token directly follows the token appended
    /// before. Otherwise the token begins a new stretch.
    void add(std::int64_t cluster, bool follows);

    /// Appends the stretches of \p more.
    void append(const TokenLayout& more);
    /// Renumbers clusters so that no number is skipped; keeps their order.
    void close_gaps();

    [[nodiscard]] std::int64_t tokens() const;
    /// 1 + the largest number in `cluster_of`. No number may be skipped.
    [[nodiscard]] std::int64_t clusters() const;
};

/// Numbers clusters from 0 in the order of their first tokens.
class ClusterNumbers {
public:
    /// The cluster of a sequence. A sequence without a group is a cluster by itself.
    std::int64_t of(const SequenceInfo& sequence);
    /// The cluster of a sequence that two runs have. If only one run names a group, uses this group.
    /// InputError: the runs name different groups; \p both: the two runs, for the message.
    std::int64_t of(const SequenceInfo& a, const SequenceInfo& b, const std::string& both);

    [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(numbers_.size()); }

private:
    std::map<std::string, std::int64_t> numbers_;
};

} // namespace ponderscope
