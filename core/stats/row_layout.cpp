// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/row_layout.h"

#include <numeric>

namespace ponderscope {

RowLayout RowLayout::of_clusters(std::vector<std::int64_t> tokens) {
    RowLayout rows = TokenLayout(std::move(tokens));
    rows.by_cluster_ = true;
    return rows;
}

std::size_t RowLayout::rows() const {
    return by_cluster_ ? layout_.stretches.size() : static_cast<std::size_t>(layout_.tokens());
}

double RowLayout::mean(std::span<const double> values) const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(tokens());
}

Resampling RowLayout::resampling(std::span<const std::span<const double>> series,
                                 BootstrapOptions options) const {
    if (!by_cluster_) {
        return choose_resampling(layout_, series, options);
    }
    options.unit = ResamplingUnit::clusters;
    return choose_resampling(layout_, {}, options);
}

PrefixSums RowLayout::sums(std::vector<double> values, std::size_t width) const {
    return by_cluster_ ? PrefixSums(UnitSums{
                             width, std::move(values), {layout_.stretches.begin(), layout_.stretches.end()}})
                       : PrefixSums(values, width, layout_);
}

} // namespace ponderscope
