// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <vector>

namespace ponderscope {

/// Makes a trace of the curves of trainings from what stands in their folders: log.csv, training.json,
/// config.json. For trainings of which no training.ponder is kept; those that have one are merged instead
/// (core/trace/tools/merge.h), which brings gates and recordings too. The trainings bear the names of their
/// recipes.
///
/// Everything is read before anything is written. InputError: no folders, a folder that no training left, an
/// output that exists. EnvironmentError.
void collect_curves(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& output);

} // namespace ponderscope
