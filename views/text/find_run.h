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
    std::map<qint64, qint64> counts; ///< number of found tokens for each sequence with hits
    std::map<std::int64_t, std::vector<std::int64_t>> rows; ///< TokenSubset::rows
    bool more = false;                                      ///< the list has only a part of the hits

    [[nodiscard]] qint64 size() const;
};

/// Reads the run once, sequence by sequence, with its own reader; call it on its own thread. \p done: number
/// of searched sequences, readable by other threads. InputErrors of TraceReader. \p stop throws Cancelled.
FoundInRun find_in_run(const RunKey& run, const QString& query, Attribution attribution,
                       std::atomic<qint64>& done, const std::stop_token& stop);

} // namespace ponderscope
