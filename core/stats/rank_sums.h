// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/rank_table.h"
#include "core/stats/scan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ponderscope {

/// Of five sums: of the centred and scaled ranks x, y of two quantities, and of xx, yy, xy.
Estimate rank_correlation(const PrefixSums& sums, const BootstrapOptions& options);

/// Rank correlations of a quantity with others over a sample that is looked at twice: the first look makes
/// the ranks, the second adds them up. A quantity that is NaN anywhere has none.
template <class Sample>
class RankSums {
public:
    using Value = double (*)(const Sample& sample, std::size_t token);

    /// \p values: the quantity, and those that it is set against. \p most_clusters, \p most_tokens: numbers
    /// of clusters are below the one, and there are no more tokens than the other.
    RankSums(std::vector<Value> values, std::size_t workers, std::int64_t most_clusters,
             std::int64_t most_tokens)
        : values_(std::move(values)),
          missing_(workers, std::vector<std::int64_t>(values_.size())),
          cluster_tokens_(static_cast<std::size_t>(most_clusters)) {
        for (std::size_t worker = 0; worker < workers; ++worker) {
            tables_.emplace_back();
            for (std::size_t v = 0; v < values_.size(); ++v) {
                tables_.back().emplace_back(most_tokens);
            }
        }
    }

    /// The first look.
    Commit look(std::size_t worker, std::int64_t cluster, const Sample& sample, std::size_t begin,
                std::size_t end) {
        for (std::size_t v = 0; v < values_.size(); ++v) {
            RankTable& table = tables_[worker][v];
            for (std::size_t i = begin; i < end; ++i) {
                const double value = values_[v](sample, i);
                if (std::isnan(value)) {
                    ++missing_[worker][v];
                } else {
                    table.add(value);
                }
            }
        }
        return [this, cluster, count = static_cast<std::int64_t>(end - begin)] {
            cluster_tokens_[static_cast<std::size_t>(cluster)] += count;
            tokens_ += count;
        };
    }

    /// After the first look: clusters that have tokens.
    [[nodiscard]] std::int64_t clusters() const {
        return std::ranges::count_if(cluster_tokens_, [](std::int64_t tokens) { return tokens > 0; });
    }

    /// The second: an estimate for each quantity but the first; none where it is NaN somewhere. \p
    /// by_cluster: whole clusters are drawn. \p layout: of the tokens, where they are not.
    std::vector<std::optional<Estimate>> estimates(const Source<Sample>& source, bool by_cluster,
                                                   const TokenLayout& layout,
                                                   const BootstrapOptions& options) {
        finish();
        std::int64_t clusters = 0;
        std::vector<std::int64_t> numbers;
        for (const std::int64_t tokens : cluster_tokens_) {
            numbers.push_back(tokens > 0 ? clusters++ : -1);
        }
        std::vector<SampleRows> rows;
        for (std::size_t v = 1; v < values_.size(); ++v) {
            rows.emplace_back(width, by_cluster, clusters, tokens_);
        }
        const auto n = static_cast<double>(tokens_);
        const auto scaled = [&](std::size_t v, const Sample& sample, std::size_t i) {
            return (ranks_[v].rank(values_[v](sample, i)) - (n + 1) / 2) / n; // so that little cancels
        };
        source(
            [&](std::size_t, std::int64_t cluster, const Sample& sample, std::size_t begin,
                std::size_t end) -> Commit {
                const std::int64_t number = numbers[static_cast<std::size_t>(cluster)];
                std::vector<std::array<double, width>> together(rows.size());
                for (std::size_t i = begin; i < end; ++i) {
                    const double x = scaled(0, sample, i);
                    for (std::size_t v = 1; v < values_.size(); ++v) {
                        if (!known_[v]) {
                            continue;
                        }
                        double* row = by_cluster ? together[v - 1].data() : rows[v - 1].of_token(number);
                        const double y = scaled(v, sample, i);
                        row[0] += x;
                        row[1] += y;
                        row[2] += x * x;
                        row[3] += y * y;
                        row[4] += x * y;
                    }
                }
                if (!by_cluster) {
                    return {};
                }
                return [&rows, number, sums = std::move(together),
                        count = static_cast<std::int64_t>(end - begin)] {
                    for (std::size_t v = 0; v < rows.size(); ++v) {
                        rows[v].add(number, sums[v], count);
                    }
                };
            },
            {});
        std::vector<std::optional<Estimate>> found;
        for (std::size_t v = 1; v < values_.size(); ++v) {
            found.emplace_back();
            if (known_[v]) {
                found.back() = rank_correlation(std::move(rows[v - 1]).sums(layout), options);
            }
        }
        return found;
    }

    [[nodiscard]] std::int64_t tokens() const { return tokens_; }

private:
    static constexpr std::size_t width = 5;

    void finish() {
        for (std::size_t v = 0; v < values_.size(); ++v) {
            std::vector<RankTable> of_workers;
            known_.push_back(true);
            for (std::size_t worker = 0; worker < tables_.size(); ++worker) {
                known_.back() = known_.back() && missing_[worker][v] == 0;
                of_workers.push_back(std::move(tables_[worker][v]));
            }
            ranks_.push_back(merged(std::move(of_workers)));
        }
        tables_.clear();
    }

    std::vector<Value> values_;
    std::vector<std::vector<RankTable>> tables_; ///< [worker][value], of the first look
    std::vector<std::vector<std::int64_t>> missing_;
    std::vector<RankTable> ranks_;
    std::vector<bool> known_;
    std::vector<std::int64_t> cluster_tokens_;
    std::int64_t tokens_ = 0;
};

/// \p collector's look, as a source wants it.
template <class Sample>
Look<Sample> looked_at_by(RankSums<Sample>& collector) {
    return [&collector](std::size_t worker, std::int64_t cluster, const Sample& sample, std::size_t begin,
                        std::size_t end) { return collector.look(worker, cluster, sample, begin, end); };
}

} // namespace ponderscope
