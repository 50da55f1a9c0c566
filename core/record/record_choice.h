// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/engine/engine.h"

#include <optional>
#include <string>

namespace ponderscope {

/// The value of `--record`: one of scalars, basic and steps (default: steps). After a comma, basic and steps
/// accept layers, states[:LAYERS] and experts[:probabilities].
struct RecordChoice {
    RecordLevel level = RecordLevel::steps;
    bool scalars = false; ///< store only one row for each token and the gate at the exit
    bool exits = false;   ///< "layers" alone: the blocks of a vanilla model are its steps
    bool lens = false;    ///< "layers" after basic or steps: every layer is read out at every step
    std::optional<std::string> states; ///< LAYERS; empty: the end of each step
    RecordedExperts experts = RecordedExperts::none;

    /// InputError: invalid text.
    static RecordChoice parse(const std::string& text);
    /// InputError: the engine's model does not support a choice.
    void apply(Engine& engine) const;
};

} // namespace ponderscope
