// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Ranks of more values than fit into memory: they are counted, and ranks are read off the counts.
///
/// Up to `exact_values` values, ranks are exact, equal values sharing the mean of theirs. Beyond, values that
/// agree in sign, exponent and the first 13 bits behind the leading one (that differ by less than 1/8192 of
/// themselves) share a rank; the table is then some megabytes large, however many there are.
class RankTable {
public:
    static constexpr std::int64_t exact_values = 1 << 22;

    /// \p most: values that will come at most, of all tables that are merged.
    explicit RankTable(std::int64_t most) : exact_(most <= exact_values) {}

    void add(double value) { ///< not NaN
        const std::uint64_t key = key_of(value);
        ++bin(key);
        ++count_;
        if (exact_) {
            keys_.push_back(key);
        }
    }
    void merge(RankTable&& other);
    /// Call when all are there, once.
    void finish();

    [[nodiscard]] std::int64_t count() const { return count_; }
    /// From 1; of a value that was added.
    [[nodiscard]] double rank(double value) const {
        const std::uint64_t key = key_of(value);
        const Page& page = *pages_[key >> mantissa_bits];
        const std::size_t at = bin_of(key);
        return exact_ ? rank_within(page[at], page[at + 1], key)
                      : (static_cast<double>(page[at] + 1) + static_cast<double>(page[at + 1])) / 2;
    }

private:
    static constexpr unsigned bin_bits = 13;
    static constexpr std::size_t bins = std::size_t{1} << bin_bits;
    static constexpr unsigned mantissa_bits = 52;
    /// Values of one sign and exponent: how many lie in each bin; when finished, how many lie before it.
    using Page = std::array<std::int64_t, bins + 1>;

    [[nodiscard]] double rank_within(std::int64_t begin, std::int64_t end, std::uint64_t key) const;
    /// Grows with the value; equal values (0 and -0) have one.
    static std::uint64_t key_of(double value) {
        const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
        constexpr std::uint64_t sign = std::uint64_t{1} << 63U;
        return (bits & sign) != 0 ? ~bits : bits | sign;
    }
    std::int64_t& bin(std::uint64_t key) {
        std::unique_ptr<Page>& page = pages_[key >> mantissa_bits];
        if (!page) {
            page = std::make_unique<Page>();
        }
        return (*page)[bin_of(key)];
    }
    static std::size_t bin_of(std::uint64_t key) { return (key >> (mantissa_bits - bin_bits)) & (bins - 1); }

    bool exact_;
    std::int64_t count_ = 0;
    std::vector<std::unique_ptr<Page>> pages_{std::size_t{1} << (64 - mantissa_bits)};
    std::vector<std::uint64_t> keys_; ///< where exact; sorted when finished
};

/// One of several, at least one, finished.
RankTable merged(std::vector<RankTable> tables);

/// The notice beside a rank correlation of so many tokens; nothing where ranks are exact.
std::optional<std::string> rank_notice(std::int64_t tokens);

/// The rank correlation from five sums: of the centred and scaled ranks x, y of two quantities, and of xx,
/// yy, xy.
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
