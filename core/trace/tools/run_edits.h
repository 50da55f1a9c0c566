// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

namespace ponderscope {

class Database;

// Edits of the runs of a trace that no process writes. A run is identified by id, name and start time
// together: if the file holds another by now (a second window was faster), nothing is done. InputError: no
// such run, no trace, another writer. EnvironmentError: the file or its folder cannot be written, no room.

/// InputError unless the text can name a run: 1 to 1000 bytes of UTF-8, in one line.
void check_run_name(const std::string& name);

/// Renames a run, and in its annotations, too. InputError: check_run_name, or a name that another run has.
void rename_run(const std::filesystem::path& trace, const RunInfo& run, const std::string& name);

/// Writes a trace without the run and replaces the old file once the new file is complete. The other runs
/// keep their ids. Annotations and notes of the run stay beside the trace: they apply again if it is recorded
/// again. Cancelled.
void remove_run(const std::filesystem::path& trace, const RunInfo& run, const std::stop_token& stop = {});

/// Removes the run \p old and gives its name to \p fresh, a run of the same trace. Later runs reuse the space
/// of the old one. Annotations stay beside the trace under that name.
void replace_run(const std::filesystem::path& trace, const RunInfo& old, const RunInfo& fresh);

/// Removes an incompletely copied run if possible; else marks it as partial.
void forget_run(const std::filesystem::path& trace, std::int64_t run) noexcept;

/// Removes the rows of a run from a trace that is open for writing; the file keeps its size.
void delete_run(Database& database, std::int64_t run);
/// The same for rows that belong to a sequence (by its id), without its own row.
void delete_contents(Database& database, std::int64_t sequence);

} // namespace ponderscope
