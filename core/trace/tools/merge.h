// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// Copies all trainings with their curves and all runs of \p inputs, in order, into a new trace. Repeated
/// names get " (2)". Partial runs stay partial. Runs with the same tokenizer share a vocabulary. Copies
/// annotations beside the inputs, too. If an input names a run, copies only this run and none of this input's
/// trainings. The output appears whole or not at all.
///
/// InputError: no inputs, a damaged input (by structure or checksum), an existing output. EnvironmentError:
/// disk full, no permission. Cancelled.
void merge_runs(const std::vector<RunReference>& inputs, const std::filesystem::path& output,
                const ProgressSink& progress = {}, const std::stop_token& stop = {});

/// Copies a run into the trace \p to, which is created if it does not exist. Returns the run's name in \p to
/// (a taken name gets " (2)"). After a failure, removes the incomplete copy. Does not copy annotations.
///
/// InputError: unknown run; damaged input; \p to is not a trace, is \p from itself, or is being written.
/// EnvironmentError: disk full, no permission. Cancelled.
std::string copy_run(const std::filesystem::path& from, std::int64_t run, const std::filesystem::path& to,
                     const ProgressSink& progress = {}, const std::stop_token& stop = {});

/// Joins the shards of one run (files, a folder or a pattern) into the trace that one process would have
/// recorded: the same sequences, tokens, signals and totals, bit by bit. The output appears whole or not at
/// all. InputError: as merge_runs; also missing, repeated or unfinished shards, or shards of several runs.
void join_shards(const std::vector<std::filesystem::path>& shards, const std::filesystem::path& output,
                 const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
