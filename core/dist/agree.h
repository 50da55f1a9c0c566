// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/dist/collectives.h"

#include <nlohmann/json.hpp>

#include <functional>

namespace ponderscope {

/// What a process found when it looked at what it was given.
struct Findings {
    /// What all of them must have in common, in the words of a sentence: {"texts": digest, "--seed": 4}.
    /// Null: this process has nothing to do with it, and agrees.
    nlohmann::json common;
    nlohmann::json own; ///< what else the others are to know
};

/// Lets every process look, before anything is computed, and compares. \p look may throw: then all processes
/// end, each with its own sentence or with that of the lowest rank that has one. Returns `own` of rank 0.
/// InputError: \p common differs; the sentence says of which rank and in what. Cancelled: one was.
nlohmann::json agree(Collectives& collectives, const World& world, const std::function<Findings()>& look);

} // namespace ponderscope
