// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/experts/expert_charts.h"

#include "views/common/colour_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

QString per_cent(double share) {
    return QString::number(100 * share, 'f', 1) + u" %"_s;
}

double even_share(const ExpertUse& use) {
    return use.experts > 0 ? static_cast<double>(use.chosen) / static_cast<double>(use.experts) : 0;
}

} // namespace

Chart experts_chart(const ExpertUse& use) {
    Chart chart;
    chart.title = u"Load of the experts by layer"_s;
    chart.x.label = u"expert"_s;
    chart.x.whole = true;
    chart.y.label = u"layer"_s;
    chart.y.reversed = true;
    chart.note =
        u"Each token uses %1 of %2 experts. With even use, each expert has a load of %3."_s.arg(use.chosen)
            .arg(use.experts)
            .arg(per_cent(even_share(use)));
    auto cells = Chart::Series::of(Chart::Mark::cell);
    double high = 0;
    for (std::size_t l = 0; l < use.layers.size(); ++l) {
        const LayerExperts& layer = use.layers[l];
        chart.y.names.push_back(QString::fromStdString(layer.layer));
        for (std::size_t e = 0; e < layer.load.size(); ++e) {
            const double share = layer.share(e);
            cells.addCell(static_cast<double>(e), static_cast<double>(l), share,
                          u"layer %1, expert %2: %3 of the tokens"_s.arg(
                              chart.y.names.back(), QString::number(e), per_cent(share)));
            high = std::isnan(share) ? high : std::max(high, share);
        }
    }
    chart.scale = Chart::Scale{u"share of tokens"_s, 0, high > 0 ? nice_ceiling(high) : 1.0, false};
    chart.series.push_back(std::move(cells));
    return chart;
}

Chart expert_agreement_chart(const std::vector<ExpertAgreement>& layers) {
    Chart chart;
    chart.title = u"Experts that A and B share"_s;
    chart.x.label = u"layer"_s;
    chart.y.label = u"share"_s;
    chart.y.from_zero = true;
    chart.y.high = 1.0;
    auto common = Chart::Series::of(Chart::Mark::bar, Chart::a, u"chosen experts in common"_s);
    auto same = Chart::Series::of(Chart::Mark::point, Chart::b, u"tokens with same experts"_s);
    for (std::size_t l = 0; l < layers.size(); ++l) {
        chart.x.names.push_back(QString::fromStdString(layers[l].layer));
        for (const auto& [series, value] : {std::pair{&common, layers[l].common}, {&same, layers[l].same}}) {
            series->add(static_cast<double>(l), value,
                        u"layer %1: %2 %3"_s.arg(chart.x.names.back(), per_cent(value), series->name));
        }
    }
    chart.series = {std::move(common), std::move(same)};
    return chart;
}

std::vector<float> expert_map(const ExpertRows& rows, const std::vector<float>& weights, std::int64_t experts,
                              std::int64_t layer, const std::vector<std::int32_t>& step) {
    std::vector<float> map(static_cast<std::size_t>(rows.tokens * experts),
                           std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t t = 0; t < rows.tokens; ++t) {
        const std::int64_t k = rows.steps > 1 ? step[static_cast<std::size_t>(t)] : 0;
        if (k < 0 || k >= rows.steps) {
            continue;
        }
        const std::int64_t first = ((t * rows.steps + k) * rows.layers + layer) * rows.chosen;
        for (std::int64_t c = 0; c < rows.chosen; ++c) {
            const auto place = static_cast<std::size_t>(first + c);
            const std::int64_t expert = rows.ids[place];
            if (expert >= 0 && expert < experts && place < weights.size()) {
                map[static_cast<std::size_t>(t * experts + expert)] = weights[place];
            }
        }
    }
    return map;
}

} // namespace ponderscope
