// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/token_scatter.h"

#include "views/compare/compare_charts.h"

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr std::size_t most_drawn_tokens = 30'000; ///< what replots within a frame
constexpr int points_series = 1;

} // namespace

TokenScatter::TokenScatter(ViewContext context, QWidget* parent)
    : ChartPlot(context.theme, parent), selection_(context.selection) {
    setAccessibleName(u"NLL of the two runs, token against token"_s);
    connect(this, &ChartPlot::markHovered, this, [this](int series, int index) {
        const auto* place = placeOf(series, index);
        // A token of another sequence cannot be shown without leaving this one; a click does that.
        const bool here = place != nullptr && place->sequence == selection_.sequence();
        selection_.setHover(here ? selection_.tokenOf(place->row) : -1);
    });
    connect(this, &ChartPlot::markClicked, this, [this](int series, int index) {
        if (const auto* place = placeOf(series, index)) {
            selection_.setSequence(place->sequence);
            selection_.setToken(selection_.tokenOf(place->row));
        }
    });
    connect(&selection_, &Selection::hoverChanged, this, &TokenScatter::showRings);
    connect(&selection_, &Selection::tokenChanged, this, &TokenScatter::showRings);
    connect(&selection_, &Selection::sequenceChanged, this, &TokenScatter::showRings);
    connect(&selection_, &Selection::attributionChanged, this, &TokenScatter::showRings);
    setComparison(nullptr);
}

void TokenScatter::setComparison(std::shared_ptr<const RunComparison> comparison) {
    comparison_ = comparison && comparison->runs.size() > 1 ? std::move(comparison) : nullptr;
    stride_ = 1;
    if (!comparison_) {
        setHint(u"Choose a run B over the same text to see token against token."_s);
        return;
    }
    stride_ = comparison_->places.size() / most_drawn_tokens + 1;
    const QString name = accessibleName();
    setChart(token_pairs_chart(*comparison_, stride_));
    setAccessibleName(name); // the chart has no title, and an axis names one run only
    showRings();
}

const RunComparison::Place* TokenScatter::placeOf(int series, int index) const {
    return comparison_ && series == points_series
               ? &comparison_->places[static_cast<std::size_t>(index) * stride_]
               : nullptr;
}

ChartPlot::Mark TokenScatter::markOf(std::size_t place) const {
    return place % stride_ == 0 ? Mark{points_series, static_cast<int>(place / stride_)} : Mark{};
}

void TokenScatter::showRings() {
    const auto mark = [&](qint64 token) -> Mark {
        if (!comparison_ || token < 0) {
            return {};
        }
        const RunComparison::Place place{static_cast<std::int32_t>(selection_.sequence()),
                                         static_cast<std::int32_t>(selection_.rowOf(token))};
        const auto& places = comparison_->places;
        const auto found = std::lower_bound(places.begin(), places.end(), place);
        return found != places.end() && *found == place
                   ? markOf(static_cast<std::size_t>(found - places.begin()))
                   : Mark{};
    };
    if (selection_.hover() >= 0) {
        setHovered(mark(selection_.hover()));
    }
    setSelected(mark(selection_.token()));
}

} // namespace ponderscope
