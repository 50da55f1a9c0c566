// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/winners.h"

#include "core/base/error.h"
#include "core/stats/significance.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// Ids of the tokens that the compared rows predict, -1 where they have none.
std::vector<std::int32_t> predicted_ids(const RunComparison& comparison, const TraceReader& reader,
                                        const RunInfo& run, const std::stop_token& stop) {
    std::vector<std::int32_t> ids;
    ids.reserve(comparison.places.size());
    TokenColumns tokens;
    std::int32_t sequence = -1;
    for (const RunComparison::Place& place : comparison.places) {
        if (place.sequence != sequence) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            sequence = place.sequence;
            tokens = reader.tokens(run.id, sequence);
        }
        const auto at = static_cast<std::size_t>(place.row) + 1;
        ids.push_back(at < tokens.size() ? tokens.id[at] : -1);
    }
    return ids;
}

} // namespace

Winners winners_of(const RunComparison& comparison, const ComparisonRequest& request, const std::string& by,
                   std::size_t second, const std::stop_token& stop,
                   const std::vector<RunComparison::Place>& only) {
    if (comparison.runs.size() <= second || second == 0) {
        throw InputError("There is no second run over this text to compare with.");
    }
    const std::vector<float>& a = comparison.runs.front().token_nll;
    const std::vector<float>& b = comparison.runs[second].token_nll;
    TokenGrouping groups;
    if (by == "position") {
        std::vector<std::int64_t> positions;
        for (const RunComparison::Place& place : comparison.places) {
            positions.push_back(place.row + std::int64_t{1});
        }
        groups = group_by_position(positions);
    } else if (by == "difficulty") {
        std::vector<double> values;
        for (std::size_t i = 0; i < a.size(); ++i) {
            values.push_back((static_cast<double>(a[i]) + static_cast<double>(b[i])) / 2);
        }
        groups = group_by_difficulty(values);
    } else {
        const TraceReader reader = TraceReader::open(request.runs.front().trace);
        const RunInfo run = comparison.runs.front().info;
        const std::vector<std::int32_t> ids = predicted_ids(comparison, reader, run, stop);
        const auto bytes = [&](std::int32_t id) {
            return id < 0 ? std::string() : reader.token_bytes(run.id, id);
        };
        groups = by == "type" ? group_by_type(ids, bytes) : group_by_class(ids, bytes);
    }
    std::vector<GroupTotals> totals(groups.groups.size());
    std::vector<std::int64_t> b_lower(totals.size());
    const std::vector<std::size_t> units = units_of(comparison.layout, comparison.resampling);
    for (std::size_t i = 0; i < groups.group.size(); ++i) {
        if (groups.group[i] >= 0 &&
            (only.empty() || std::binary_search(only.begin(), only.end(), comparison.places[i]))) {
            const auto g = static_cast<std::size_t>(groups.group[i]);
            totals[g].add(units[i], static_cast<double>(a[i]) - static_cast<double>(b[i]));
            b_lower[g] += b[i] < a[i] ? 1 : 0;
        }
    }
    Winners winners{comparison.runs.front().label, comparison.runs[second].label, by, {}};
    std::vector<double> p;
    for (std::size_t g = 0; g < totals.size(); ++g) {
        const GroupTotals& one = totals[g];
        if (one.count == 0) {
            continue;
        }
        winners.rows.push_back({groups.groups[g], one.count, one.interval(),
                                static_cast<double>(b_lower[g]) / static_cast<double>(one.count), 0});
        const double low = winners.rows.back().difference.low;
        p.push_back(std::isnan(low) ? low : sign_flip_p(one.sums));
    }
    const std::vector<double> q = false_discovery_q(p);
    for (std::size_t i = 0; i < q.size(); ++i) {
        winners.rows[i].q = q[i];
    }
    return winners;
}

} // namespace ponderscope
