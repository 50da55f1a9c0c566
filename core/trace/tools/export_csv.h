// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/trace/reader.h"

#include <filesystem>
#include <stop_token>
#include <vector>

namespace ponderscope {

/// Writes a trace as tables (RFC 4180, UTF-8, LF) into a new folder: runs.csv, sequences.csv one line each,
/// with totals tokens.csv one line a token, with its text and its annotations labels.csv one line a part of
/// the text that was recorded with a class, where there is any training.csv one line a point of a training's
/// curves, where the trace has any and all runs are wanted signals/NAME.csv long format: run, sequence,
/// position, the signal's other axes, value Numbers are the shortest that read back as the same value,
/// whatever the locale; a missing one (not scored, step not run) is an empty field. Bytes that are part of a
/// character are written as U+FFFD; text_begin and text_end say which they are.
///
/// The folder appears whole or not at all. InputError: it exists and is not empty, a damaged trace (also one
/// whose bytes are possible, but not those that were recorded). EnvironmentError. Cancelled. \p runs: ids;
/// empty for all.
void export_csv(const TraceReader& reader, const std::filesystem::path& folder,
                const std::vector<std::int64_t>& runs = {}, const ProgressSink& progress = {},
                const std::stop_token& stop = {});

} // namespace ponderscope
