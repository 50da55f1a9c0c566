// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/console.h"
#include "app/cli/options.h"
#include "core/base/notice.h"
#include "core/policy/replay.h"
#include "core/stats/bootstrap.h"
#include "core/trace/reader.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <vector>

namespace ponderscope::cli {

/// Options for verbs that replay policies and may also rerun the model with them.
struct RerunOptions {
    ModelOptions model; ///< without a checkpoint: replays only
    std::string kv;     ///< empty: the result of kv_of_rerun for the run
    std::filesystem::path output;
    std::int64_t batch = 8;

    void add_to(CLI::App& verb);
    [[nodiscard]] bool wanted() const { return !model.checkpoint.empty(); }
    /// InputError: the trace for the reruns is a shard or a set of shards, or --kv names no KV policy.
    void check(const TraceReader& reader) const;
    /// The trace that stores the reruns of a run.
    [[nodiscard]] std::filesystem::path trace(const TraceReader& reader) const {
        return output.empty() ? reader.path() : output;
    }
    /// The reruns in trace(), in the order of \p specs. Computes missing reruns.
    [[nodiscard]] std::vector<RunInfo> make(const TraceReader& reader, const RunInfo& source,
                                            const ReplayTable& table, const std::vector<PolicySpec>& specs,
                                            ProgressPrinter& printer, const std::stop_token& stop) const;
};

/// The notices of a report on replays: limits of replays, halted tokens, a partial run, a small sample.
Notices notices_of_replays(const ReplayTable& table, const RunInfo& run, const Resampling& resampling,
                           bool reran);

} // namespace ponderscope::cli
