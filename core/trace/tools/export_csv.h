// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/trace/reader.h"

#include <filesystem>
#include <stop_token>
#include <vector>

namespace ponderscope {

/// Writes a trace as tables (RFC 4180, UTF-8, LF) into a new folder:
///   runs.csv, sequences.csv   a line for each, with totals
///   tokens.csv                a line for each token, with its text and its annotations
///   labels.csv                a line for each label, if there are labels
///   training.csv              a line for each point of a training's curves, if all runs are exported
///   signals/NAME.csv          long format: run, sequence, position, the signal's other axes, value
/// Numbers have the fewest digits that read back as the same value, in every locale. A missing number (not
/// scored, step not run) is an empty field. A token that is only a part of a character has the text U+FFFD;
/// text_begin and text_end locate its bytes.
///
/// The folder appears whole or not at all. InputError: the folder exists and is not empty, or the trace is
/// damaged (by structure or checksum). EnvironmentError. Cancelled. \p runs: ids; empty: all.
void export_csv(const TraceReader& reader, const std::filesystem::path& folder,
                const std::vector<std::int64_t>& runs = {}, const ProgressSink& progress = {},
                const std::stop_token& stop = {});

} // namespace ponderscope
