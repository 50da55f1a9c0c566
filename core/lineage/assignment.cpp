// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/assignment.h"

#include "core/base/error.h"

#include <limits>

namespace ponderscope {

std::vector<std::int64_t> assign_rows(std::span<const double> cost, std::int64_t rows, std::int64_t columns,
                                      const std::stop_token& stop) {
    const auto n = static_cast<std::size_t>(rows);
    const auto m = static_cast<std::size_t>(columns);
    constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();
    constexpr double infinite = std::numeric_limits<double>::infinity();
    std::vector<double> row_price(n, 0.0);
    std::vector<double> column_price(m, 0.0);
    std::vector<std::size_t> column_of(n, nobody);
    std::vector<std::size_t> row_of(m, nobody);
    std::vector<double> distance(m);
    std::vector<std::size_t> before(m);      // for each column: the row before it on the shortest path
    std::vector<std::size_t> open(m);        // columns whose distance is not final
    std::vector<std::size_t> closed_columns; // columns whose distance is final
    for (std::size_t start = 0; start < n; ++start) {
        throw_if_stopped(stop);
        // Dijkstra's algorithm over reduced costs, which are never negative, to the nearest free column.
        std::fill(distance.begin(), distance.end(), infinite);
        for (std::size_t j = 0; j < m; ++j) {
            open[j] = m - 1 - j; // backwards, so that the lowest of equal columns wins
        }
        std::size_t left = m;
        closed_columns.clear();
        std::size_t row = start;
        double reached = 0;
        std::size_t sink = nobody;
        while (sink == nobody) {
            const double base = reached - row_price[row];
            const double* costs = cost.data() + row * m;
            double lowest = infinite;
            std::size_t nearest = 0;
            for (std::size_t at = 0; at < left; ++at) {
                const std::size_t j = open[at];
                const double through = base + costs[j] - column_price[j];
                if (through < distance[j]) {
                    distance[j] = through;
                    before[j] = row;
                }
                // Among equal distances, a free column wins: it ends the search.
                if (distance[j] < lowest || (distance[j] == lowest && row_of[j] == nobody)) {
                    lowest = distance[j];
                    nearest = at;
                }
            }
            const std::size_t j = open[nearest];
            reached = lowest;
            open[nearest] = open[--left];
            closed_columns.push_back(j);
            if (row_of[j] == nobody) {
                sink = j;
            } else {
                row = row_of[j];
            }
        }
        row_price[start] += reached;
        for (const std::size_t j : closed_columns) {
            if (j != sink) {
                row_price[row_of[j]] += reached - distance[j];
            }
            column_price[j] -= reached - distance[j];
        }
        for (std::size_t j = sink;;) { // reverse the path
            const std::size_t i = before[j];
            row_of[j] = i;
            std::swap(column_of[i], j);
            if (i == start) {
                break;
            }
        }
    }
    return {column_of.begin(), column_of.end()};
}

} // namespace ponderscope
