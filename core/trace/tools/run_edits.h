// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

namespace ponderscope {

class Database;

// Edits of runs in a trace that no process is writing. Id, name and start time together identify a run, so an
// edit changes nothing if another process has replaced the run. InputError: unknown run, not a trace, or
// another writer. EnvironmentError: the file or its folder cannot be written, or the disk is full.

/// InputError unless \p name is valid for a run: 1 to 1000 bytes of UTF-8 on one line.
void check_run_name(const std::string& name);

/// Renames a run, also in its annotations. InputError: as check_run_name, or another run has the name.
void rename_run(const std::filesystem::path& trace, const RunInfo& run, const std::string& name);

/// Writes a trace without the run, then replaces the old file. The other runs keep their ids. Annotations and
/// notes of the run stay beside the trace and apply again if the run is recorded again. Cancelled.
void remove_run(const std::filesystem::path& trace, const RunInfo& run, const std::stop_token& stop = {});

/// Removes the run \p old and gives its name to \p fresh, a run of the same trace. Later runs reuse the freed
/// space. The annotations of this name stay beside the trace.
void replace_run(const std::filesystem::path& trace, const RunInfo& old, const RunInfo& fresh);

/// Removes an incompletely copied run. If that fails, marks it as partial.
void forget_run(const std::filesystem::path& trace, std::int64_t run) noexcept;

/// Removes the rows of a run from an open trace. The file keeps its size.
void delete_run(Database& database, std::int64_t run);
/// Removes everything of a sequence (by id) except its row in the table sequence.
void delete_contents(Database& database, std::int64_t sequence);

} // namespace ponderscope
