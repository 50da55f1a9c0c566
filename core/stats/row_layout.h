// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace ponderscope {

/// What the values of a sample stand for: one token each or, where whole clusters are drawn and nothing else
/// is needed, what the tokens of one cluster add up to.
class RowLayout {
public:
    RowLayout() = default;
    /// A row a token.
    RowLayout(TokenLayout tokens) : layout_(std::move(tokens)) {} // NOLINT(google-explicit-constructor)
    RowLayout(std::initializer_list<std::int64_t> stretches) : layout_(stretches) {}
    /// A row a cluster, of so many tokens each.
    static RowLayout of_clusters(std::vector<std::int64_t> tokens);

    [[nodiscard]] bool by_cluster() const { return by_cluster_; }
    [[nodiscard]] const TokenLayout& layout() const { return layout_; }
    [[nodiscard]] std::size_t rows() const;
    [[nodiscard]] std::int64_t tokens() const { return layout_.tokens(); }
    /// Tokens under a row.
    [[nodiscard]] double weight(std::size_t row) const {
        return by_cluster_ ? static_cast<double>(layout_.stretches[row]) : 1;
    }
    /// Over tokens, of a value a row.
    [[nodiscard]] double mean(std::span<const double> values) const;
    /// As choose_resampling; rows that are clusters are drawn whole.
    [[nodiscard]] Resampling resampling(std::span<const std::span<const double>> series,
                                        BootstrapOptions options) const;
    /// \p values: [rows, width].
    [[nodiscard]] PrefixSums sums(std::vector<double> values, std::size_t width) const;

private:
    TokenLayout layout_; ///< of clusters: a stretch each
    bool by_cluster_ = false;
};

} // namespace ponderscope
