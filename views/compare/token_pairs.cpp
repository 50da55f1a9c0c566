// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/token_pairs.h"

#include "views/common/format.h"
#include "views/common/translated.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {

Chart token_pairs_chart(const RunComparison& comparison, std::size_t stride) {
    const std::vector<float>& a = comparison.runs[0].token_nll;
    const std::vector<float>& b = comparison.runs[1].token_nll;
    Chart chart;
    const auto label = [&](std::size_t run) {
        return tr("NLL of %1 (nats)").arg(QString::fromStdString(comparison.runs[run].label));
    };
    chart.x.label = label(0);
    chart.y.label = label(1);
    chart.x.from_zero = chart.y.from_zero = true;
    Chart::Series points;
    points.mark = Chart::Mark::point;
    points.ink = Chart::text;
    double high = 1;
    for (std::size_t i = 0; i < a.size(); ++i) {
        high = std::max({high, static_cast<double>(a[i]), static_cast<double>(b[i])});
        if (i % stride == 0) {
            points.x.push_back(a[i]);
            points.y.push_back(b[i]);
        }
    }
    Chart::Series equal;
    equal.ink = Chart::soft;
    equal.dashed = true;
    equal.x = equal.y = {0, high};
    chart.series = {std::move(equal), std::move(points)};
    const Estimate& r = comparison.runs[1].correlation;
    chart.note = tr("r = %1").arg(format_nats(r.value, 3));
    if (!std::isnan(r.low)) {
        chart.note += tr(" [%1, %2]").arg(format_nats(r.low, 3), format_nats(r.high, 3));
    }
    chart.note += tr(", %1 tokens").arg(format_count(static_cast<std::int64_t>(comparison.places.size())));
    if (stride > 1) {
        chart.note += tr(", one of %1 drawn").arg(stride);
    }
    return chart;
}

} // namespace ponderscope
