// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/engine/engine.h"

#include <optional>
#include <string>

namespace ponderscope {

/// The signals that a run records, as in `--record`: one of scalars, basic and steps (default: steps). With
/// commas, basic and steps take layers, states[:LAYERS] and experts[:probabilities].
struct RecordChoice {
    RecordLevel level = RecordLevel::steps;
    bool scalars = false; ///< store only one row a token and the gate at exit
    bool exits = false;   ///< layers alone: the blocks of a vanilla model are its steps
    bool lens = false;    ///< layers beside basic or steps: every layer is read out at every step
    std::optional<std::string> states; ///< LAYERS; empty: the end of each step
    RecordedExperts experts = RecordedExperts::none;

    /// InputError: anything else.
    static RecordChoice parse(const std::string& text);
    /// InputError: something that the engine's model does not have.
    void apply(Engine& engine) const;
};

} // namespace ponderscope
