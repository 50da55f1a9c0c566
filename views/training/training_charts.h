// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "views/chart/chart.h"

#include <QString>

#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// A training of a trace with all its curves.
struct TrainingRecord {
    std::filesystem::path trace;
    TrainingInfo info;
    std::vector<TrainingQuantity> quantities;
    std::vector<TrainingCurve> curves;

    /// nullptr: no such curve.
    [[nodiscard]] const TrainingCurve* curve(std::string_view name, std::int64_t place = 0) const;
    [[nodiscard]] const TrainingQuantity* quantity(std::string_view name) const;
};

/// All trainings of a trace; empty if there are none. InputError: the trace cannot be read. Cancelled: \p
/// stop was requested.
std::vector<TrainingRecord> read_trainings(const std::filesystem::path& trace,
                                           const std::stop_token& stop = {});

/// The training with this name or number, or all if the name is empty. InputError: there is none.
std::vector<TrainingRecord> trainings_named(const std::filesystem::path& trace, const std::string& name,
                                            const std::stop_token& stop = {});

struct TrainingChartOptions {
    std::string axis = "steps"; ///< the x axis: "steps", "tokens" or "seconds"
    /// Weight of earlier values in a running mean of the loss and other noisy quantities: 0 (no smoothing) to
    /// below 1. Held-out measurements are never smoothed.
    double smoothing = 0;
};

/// A chart of trainings. \p what is "loss" (with the held-out NLL), "mean_steps" (with the held-out mean
/// steps), or another quantity of a training. A quantity with an axis has one line for each index along the
/// axis. Other names give an empty chart. Each training has its own colour. In a chart of one training, each
/// index has its own colour. The note gives the progress of unfinished trainings.
Chart training_chart(std::span<const TrainingRecord> trainings, const std::string& what,
                     const TrainingChartOptions& options);

/// The quantities that "loss" and "mean_steps" do not show, each once, first those with an axis (gates).
std::vector<TrainingQuantity> further_quantities(std::span<const TrainingRecord> trainings);

/// The progress of a training, or the reason for its failure; empty: the training has ended.
QString training_state(const TrainingInfo& training);

/// A running mean without bias towards the first values: m_i = Σ_j w^(i-j) x_j / Σ_j w^(i-j). NaN stays NaN.
std::vector<double> smoothed(std::span<const double> values, double weight);

} // namespace ponderscope
