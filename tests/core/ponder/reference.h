// SPDX-License-Identifier: GPL-3.0-or-later
// What another implementation computed for a checkpoint: a folder with config.json, model.safetensors,
// golden.safetensors and case.json.
#pragma once

#include "core/ponder/engine/engine.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace ponderscope::testing {

/// All F32, F64, F16, BF16 and integer tensors of a safetensors file. InputError for other kinds.
ArrayMap read_arrays(const std::filesystem::path& path);

/// One array of a reference against ours.
struct ReferenceComparison {
    std::string name;
    double difference = 0; ///< largest absolute difference; counts of unequal entries for integers
    double tolerance = 0;  ///< how much of it passes; wider for what magnifies the rounding of logits
    bool exact = false;    ///< integers: must be equal
    bool decides = false;  ///< logits, NLL and generated ids decide; intermediates are shown to find a fault
    bool shape_fits = true;
    bool passed = true;
};

struct ReferenceResult {
    std::vector<ReferenceComparison> comparisons;
    std::vector<std::string> missing; ///< arrays of the reference that we do not produce
    double tolerance = 0;
    [[nodiscard]] bool passed() const {
        return std::all_of(comparisons.begin(), comparisons.end(),
                           [](const ReferenceComparison& c) { return c.passed || !c.decides; });
    }
};

/// Computes all arrays of golden.safetensors in \p folder and compares them with it. Leaves the engine with
/// another rule. InputError for a folder that is no such case.
ReferenceResult compare_with_reference(Engine& engine, const std::filesystem::path& folder);
/// The same with the engine that case.json describes (its "arguments"), on the tests' device.
ReferenceResult compare_case(const std::filesystem::path& folder);

} // namespace ponderscope::testing
