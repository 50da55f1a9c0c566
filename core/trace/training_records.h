// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// How a model was trained: what is known of a training beside its curves. Runs that it recorded on its way
/// carry its id (RunInfo::training).
struct TrainingInfo {
    std::int64_t id = 0; ///< the writer assigns it; unique in the file, starts at 1
    std::string name;    ///< unique in the file
    std::string description;
    std::string architecture;
    std::string method;
    std::string depth_mixing;
    std::string recipe;          ///< JSON: the recipe with its defaults
    std::string config;          ///< config.json of the model
    std::string device;          ///< "cpu", "cuda:0"
    std::string precision;       ///< of the products: "float32", "bfloat16"
    std::string versions;        ///< JSON: ponderscope, torch
    std::int64_t parameters = 0; ///< elements, a tied table once
    std::int64_t max_steps = 0;  ///< K; 0: the model does not ponder
    std::int64_t planned_steps = 0;
    std::int64_t planned_tokens = 0;
    std::string started; ///< ISO 8601, UTC
    // Filled by the writer with every point:
    std::int64_t step = 0;
    std::int64_t tokens = 0;
    double seconds = 0;
    bool complete = false; ///< false: stopped, or still training
    std::string fault;     ///< what ended it before its time, one sentence; empty: nothing did
};

/// What a curve shows. Views ask for these and know no method: a quantity appears by being written.
struct TrainingQuantity {
    std::string name; ///< letters, digits and underscores
    std::string axis; ///< what `place` counts, "step" of pondering; empty: there is one value
    std::string unit; ///< "nats"; empty for none
    std::string title;
    std::string description; ///< one sentence
};

/// Where a training stands.
struct TrainingMoment {
    std::int64_t step = 0;   ///< steps of the optimiser done
    std::int64_t tokens = 0; ///< trained on so far
    double seconds = 0;      ///< of training so far, interruptions not counted
};

struct TrainingValue {
    std::string quantity;
    std::int64_t place = 0;
    double value = 0; ///< NaN: not a number
};

/// The points of one quantity at one place of its axis, in the order of the steps. All columns have the same
/// length.
struct TrainingCurve {
    std::string quantity;
    std::int64_t place = 0;
    std::vector<std::int64_t> step;
    std::vector<std::int64_t> tokens;
    std::vector<double> seconds;
    std::vector<double> value;
    [[nodiscard]] std::size_t size() const { return step.size(); }
};

/// Names of quantities that `ponderscope train` writes.
namespace training_quantity {
inline constexpr const char* loss = "loss";
inline constexpr const char* learning_rate = "learning_rate";
inline constexpr const char* gradient_norm = "gradient_norm";
inline constexpr const char* penalty = "penalty";
inline constexpr const char* mean_steps = "mean_steps";
inline constexpr const char* held_out_nll = "held_out_nll";
inline constexpr const char* held_out_mean_steps = "held_out_mean_steps";
inline constexpr const char* held_out_gate = "held_out_gate";               ///< axis "step"
inline constexpr const char* held_out_steps_share = "held_out_steps_share"; ///< axis "step"
} // namespace training_quantity

/// A quantity's places lie below this.
inline constexpr std::int64_t max_training_places = 4096;

} // namespace ponderscope
