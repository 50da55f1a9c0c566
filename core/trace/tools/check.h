// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// A promise of resources/docs/trace-schema.md that a trace does not keep.
struct TraceFault {
    std::string place;   ///< "run 1 (story), sequence 0, token 17"; empty: the file
    std::string message; ///< one sentence without its end: "nll is NULL and rank is 3"
};

struct TraceCheck {
    std::vector<TraceFault> faults; ///< in the order in which they were met
    bool stopped_early = false;     ///< there may be more than `most_faults`
    std::int64_t runs = 0;
    std::int64_t sequences = 0;
    std::int64_t tokens = 0;
    std::int64_t chunks = 0;
    /// Packed arrays, texts and sequences of tokens that were written without a CRC-32 (before these were
    /// kept, or by another program): a change to other valid bytes cannot be noticed.
    std::int64_t without_digest = 0;
};

/// Every promise of the page "Inside a trace", checked against the file: structure, totals, texts, spans,
/// scalars, packed signals, vocabulary, labels, trainings, and of the annotations beside it. Reads everything
/// once; memory grows with a sequence's text and a chunk. A trace that is being recorded may be checked; its
/// content must agree. InputError: not a trace at all. EnvironmentError: the machine could not read.
/// Cancelled.
TraceCheck check_trace(const std::filesystem::path& path, std::size_t most_faults = 1000,
                       const ProgressSink& progress = {}, const std::stop_token& stop = {});

/// InputError that names the first part of \p runs (ids; empty: of all) whose bytes differ from the recorded
/// ones, by the stored CRC-32: words, a text, rows of tokens, a chunk of a signal. Parts without a CRC-32
/// pass. Of shards, a name that TraceReader::open takes, all runs. For programs that copy the data into a new
/// file, in which damage would get a valid checksum. EnvironmentError. Cancelled.
void require_recorded(const std::filesystem::path& path, const std::vector<std::int64_t>& runs = {},
                      const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
