// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/token_subset.h"

#include <QString>

#include <atomic>
#include <map>
#include <stop_token>

namespace ponderscope {

/// The hits of a query in all sequences of a run.
struct FoundInRun {
    std::map<qint64, qint64> counts; ///< tokens of the window, by sequence; those without any are not in it
    std::map<std::int64_t, std::vector<std::int64_t>> rows; ///< of TokenSubset
    bool more = false;                                      ///< there are more than are kept

    [[nodiscard]] qint64 size() const;
};

/// Reads the run once, a sequence after the other, with a reader of its own: for a thread of its own. \p
/// done: sequences that were searched, for others to look at. InputError as TraceReader; Cancelled by \p
/// stop.
FoundInRun find_in_run(const RunKey& run, const QString& query, Attribution attribution,
                       std::atomic<qint64>& done, const std::stop_token& stop);

} // namespace ponderscope
