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

/// A violation of a rule of resources/docs/trace-schema.md.
struct TraceFault {
    std::string place;   ///< "run 1 (story), sequence 0, token 17"; empty: the whole file
    std::string message; ///< one sentence without full stop: "nll is NULL and rank is 3"
};

struct TraceCheck {
    std::vector<TraceFault> faults; ///< in the order of detection
    bool stopped_early = false;     ///< the check stopped after `most_faults` faults
    std::int64_t runs = 0;
    std::int64_t sequences = 0;
    std::int64_t tokens = 0;
    std::int64_t chunks = 0;
    /// Number of parts (chunks, texts, token rows of a sequence) without a CRC-32, from older or other
    /// programs. In them the check cannot detect bytes that changed into other valid values.
    std::int64_t without_digest = 0;
};

/// Checks every rule of resources/docs/trace-schema.md: structure, totals, texts, spans, scalars, packed
/// signals, vocabulary, labels, trainings, and the annotations beside the trace. Reads everything once; holds
/// one sequence's text and one chunk in memory. A trace that is being recorded can be checked by the same
/// rules. InputError: not a trace. EnvironmentError: the machine could not read. Throws Cancelled.
TraceCheck check_trace(const std::filesystem::path& path, std::size_t most_faults = 1000,
                       const ProgressSink& progress = {}, const std::stop_token& stop = {});

/// Compares the bytes of runs with their stored CRC-32: vocabulary, texts, token rows, chunks. \p runs: ids;
/// empty: all. InputError names the first part that differs. Parts without a CRC-32 pass. \p path is any name
/// that TraceReader::open accepts; for shards, compares all runs. Call before data is copied to a new file,
/// because damaged data would get a valid checksum there. EnvironmentError. Throws Cancelled.
void require_recorded(const std::filesystem::path& path, const std::vector<std::int64_t>& runs = {},
                      const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
