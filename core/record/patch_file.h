// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/engine/engine.h"
#include "core/record/session.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <optional>
#include <vector>

namespace ponderscope {

/// The location of a state to replace, and the source of the new state.
struct PlannedPatch {
    StatePlace to;
    /// Location of the source state, in a run without patches on the same texts. Absent: a state of zeros.
    std::optional<StatePlace> from = {};
};

/// Reads {"patches": [{"to": {"token", "step", ...}, "from": {...} | "zero"}, ...]} (format:
/// resources/docs/states.md). InputError: another format, or a location with two patches.
std::vector<PlannedPatch> read_patch_file(const std::filesystem::path& path);

/// The form that is stored with a run (RunInfo::choices): the list of patches with all defaults written out.
nlohmann::json to_json(const std::vector<PlannedPatch>& patches);

/// InputError: a patch for a token that \p sequences lack, or for a step or layer that the model lacks.
void check_places(const Engine& engine, const std::vector<PlannedPatch>& patches,
                  const std::vector<SequenceInput>& sequences);

/// Computes the source states in runs of \p sequences without patches, \p batch windows together. InputError:
/// a step that did not run. \p stop throws Cancelled.
std::vector<StatePatch> take_states(const Engine& engine, const std::vector<PlannedPatch>& patches,
                                    const std::vector<SequenceInput>& sequences, const WindowShape& shape,
                                    std::int64_t batch, const ProgressSink& progress = {},
                                    const std::stop_token& stop = {});

} // namespace ponderscope
