// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ponderscope {

/// How the tokens of a sample lie: in stretches of consecutive tokens, each inside a cluster (a sequence, or
/// its group: a document, an author, a problem). Tokens of different clusters are taken as independent,
/// tokens of one cluster are not.
struct TokenLayout {
    std::vector<std::int64_t> stretches;  ///< lengths, at least 1; they add up to the tokens of the sample
    std::vector<std::int64_t> cluster_of; ///< the cluster of each stretch, from 0; as many as stretches

    TokenLayout() = default;
    /// Every stretch is a cluster of its own.
    TokenLayout(std::vector<std::int64_t> lengths); // NOLINT(google-explicit-constructor)
    TokenLayout(std::initializer_list<std::int64_t> lengths)
        : TokenLayout(std::vector<std::int64_t>(lengths)) {}

    /// Appends a token of \p cluster. \p follows: it follows the last token in the text; else it begins a
    /// stretch.
    void add(std::int64_t cluster, bool follows);

    /// The stretches of \p more, behind these.
    void append(const TokenLayout& more);
    /// Numbers clusters anew where numbers are skipped, in their order.
    void close_gaps();

    [[nodiscard]] std::int64_t tokens() const;
    /// 1 + the largest number in `cluster_of`; layouts have no skipped numbers.
    [[nodiscard]] std::int64_t clusters() const;
};

/// Numbers clusters from 0 in the order in which they first give a token.
class ClusterNumbers {
public:
    /// A sequence without a group is a cluster of its own.
    std::int64_t of(const SequenceInfo& sequence);
    /// The cluster of a sequence that two runs have. If only one run names a group, that group counts.
    /// InputError: the runs name different groups; \p both: the runs, for the message.
    std::int64_t of(const SequenceInfo& a, const SequenceInfo& b, const std::string& both);

    [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(numbers_.size()); }

private:
    std::map<std::string, std::int64_t> numbers_;
};

} // namespace ponderscope
