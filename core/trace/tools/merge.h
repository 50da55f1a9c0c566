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

/// Copies all trainings with their curves and all runs of \p inputs, in their order, into a new trace. Names
/// that occur twice get " (2)"; partial runs stay partial; runs of one tokenizer share its vocabulary;
/// annotations beside the inputs are copied beside the output. The output appears whole or not at all.
///
/// InputError: no inputs, a damaged input (by structure or checksum), an existing output. EnvironmentError:
/// disk full, no permission. Cancelled.
void merge_traces(const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& output,
                  const ProgressSink& progress = {}, const std::stop_token& stop = {});
/// The same; from an input that names a run, only that run and no trainings.
void merge_runs(const std::vector<RunReference>& inputs, const std::filesystem::path& output,
                const ProgressSink& progress = {}, const std::stop_token& stop = {});

/// Copies a run into another trace, and makes that trace if it does not exist; returns its name there (a
/// taken name gets " (2)"). An incomplete copy is removed again. Its annotations are not copied.
///
/// InputError: no such run, a damaged input, \p to is no trace, \p from itself, or being written.
/// EnvironmentError: disk full, no permission. Cancelled.
std::string copy_run(const std::filesystem::path& from, std::int64_t run, const std::filesystem::path& to,
                     const ProgressSink& progress = {}, const std::stop_token& stop = {});

/// Joins the shards of one run (files, or a folder or pattern of them) to what one process would have
/// recorded: the same sequences, tokens, signals and totals, bit by bit. Likewise whole or not at all.
/// InputError: also shards that are missing, double, unfinished or of several runs.
void join_shards(const std::vector<std::filesystem::path>& shards, const std::filesystem::path& output,
                 const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
