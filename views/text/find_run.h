// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/token_subset.h"
#include "views/text/span.h"

#include <QString>

#include <atomic>
#include <map>
#include <stop_token>
#include <string>

namespace ponderscope {

/// The hits of a query in all sequences of a run.
struct FoundInRun {
    std::map<qint64, qint64> counts; ///< tokens of the window, by sequence; those without any are not in it
    std::map<std::string, qint64> classes;                  ///< how many of which token class
    std::map<std::int64_t, std::vector<std::int64_t>> rows; ///< of TokenSubset
    SpanStatistics statistics;                              ///< of them; against \p b
    bool more = false;                                      ///< there are more than are kept

    [[nodiscard]] qint64 size() const;
};

/// Reads the run once, a sequence after the other, with readers of its own: for a thread of its own. \p b: an
/// invalid one for none. \p done: sequences that were searched, for others to look at. InputError as
/// TraceReader; Cancelled by \p stop.
FoundInRun find_in_run(const RunKey& a, const RunKey& b, const QString& query, Attribution attribution,
                       std::atomic<qint64>& done, const std::stop_token& stop);

} // namespace ponderscope
