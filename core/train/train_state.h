// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/dtype.h"
#include "core/train/adamw.h"

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace ponderscope {

/// The state of a training besides the tensors.
struct TrainCounters {
    std::int64_t step = 0;    ///< optimiser steps done
    std::int64_t windows = 0; ///< contexts taken from the sampler
    double seconds = 0;
    double loss_sum = 0; ///< sums over the steps since the log's last row
    double penalty_sum = 0;
    double steps_sum = 0; ///< sum of the mean pondering steps per token
    std::int64_t loss_count = 0;
    double last_loss = 0; ///< mean over the steps of the log's last row
    double last_penalty = 0;
    double last_mean_steps = 0;
    double last_norm = 0;  ///< norm of the last step's gradient, before clipping
    nlohmann::json recipe; ///< the recipe with all defaults, without paths
    std::string corpus;    ///< Corpus::digest
};

/// Writes weights, both moments and counters to one safetensors file, atomically. EnvironmentError.
void save_train_state(const std::filesystem::path& path, const NamedTensors& parameters,
                      const AdamW& optimizer, const TrainCounters& counters);

/// Reads the counters only. InputError: the file is missing, damaged or of another version.
TrainCounters read_train_counters(const std::filesystem::path& path);

/// Reads weights, moments and the optimiser's step count. InputError: tensors that do not fit.
void load_train_state(const std::filesystem::path& path, const NamedTensors& parameters, AdamW& optimizer);

/// Writes tensors to a safetensors file in the given order and dtype.
void save_tensors(const std::filesystem::path& path, const NamedTensors& tensors, DType dtype);

} // namespace ponderscope
