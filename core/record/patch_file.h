// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/engine/engine.h"
#include "core/record/session.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace ponderscope {

/// A state that replaces another one, and its source.
struct PlannedPatch {
    enum class Source : std::uint8_t {
        same_run, ///< the run of the same texts without patches
        mean,     ///< over the sequence's tokens in the run without patches
        zero
    };
    StatePlace to;
    Source source = Source::same_run;
    StatePlace from; ///< of same_run
};

/// {"patches": [{"to": {"token", "step", ...}, "from": {...} | "zero" | "mean"}, ...]}, as the page on states
/// describes it. InputError: anything else, a place patched twice.
std::vector<PlannedPatch> read_patch_file(const std::filesystem::path& path);

/// The form in which a run stores them (RunInfo::choices): the list of patches of such a file, with all
/// defaults written out.
nlohmann::json to_json(const std::vector<PlannedPatch>& patches);

/// InputError: a patch of a token that \p sequences do not have, or of a step or layer of another model.
void check_places(const Engine& engine, const std::vector<PlannedPatch>& patches,
                  const std::vector<SequenceInput>& sequences);

/// Computes the states from windows of \p sequences without patches, \p batch of them together. InputError:
/// a step that did not run. Cancelled on \p stop.
std::vector<StatePatch> take_states(const Engine& engine, const std::vector<PlannedPatch>& patches,
                                    const std::vector<SequenceInput>& sequences, const WindowShape& shape,
                                    std::int64_t batch, const ProgressSink& progress = {},
                                    const std::stop_token& stop = {});

} // namespace ponderscope
