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

/// A training of a trace with all of its curves and the runs that it recorded on its way.
struct TrainingRecord {
    std::filesystem::path trace;
    TrainingInfo info;
    std::vector<TrainingQuantity> quantities;
    std::vector<TrainingCurve> curves;
    struct Snapshot {
        std::int64_t run = 0;
        std::string name;
        std::int64_t step = 0;
    };
    std::vector<Snapshot> snapshots; ///< in the order of their steps

    /// nullptr: there is none.
    [[nodiscard]] const TrainingCurve* curve(std::string_view name, std::int64_t place = 0) const;
    [[nodiscard]] const TrainingQuantity* quantity(std::string_view name) const;
};

/// All trainings of a trace; empty if it has none. InputError: the trace cannot be read. Cancelled.
std::vector<TrainingRecord> read_trainings(const std::filesystem::path& trace,
                                           const std::stop_token& stop = {});

/// The trainings that \p name means: a training of that name, the one that recorded the run of that name or
/// number, or all if the name is empty or of a run that no training recorded. InputError: there are none, or
/// none with that name.
std::vector<TrainingRecord> trainings_named(const std::filesystem::path& trace, const std::string& name,
                                            const std::stop_token& stop = {});

struct TrainingChartOptions {
    std::string axis = "steps"; ///< the x axis: "steps", "tokens" or "seconds"
    /// Weight of earlier values in a running mean of the loss and other noisy quantities, 0 (as measured) to
    /// below 1; measurements on held-out text are never smoothed.
    double smoothing = 0;
};

/// A chart of trainings. \p what is "loss" (with the NLL of held-out text), "mean_steps" (with the mean steps
/// on held-out text), or any other quantity that a training has, with one line for each place of its axis.
/// Other names give an empty chart. Trainings have one colour each; places of the axis of a single training
/// have one each. Rings are the runs that a training recorded; the note says how far unfinished trainings
/// are.
Chart training_chart(std::span<const TrainingRecord> trainings, const std::string& what,
                     const TrainingChartOptions& options);

/// The quantities of all trainings that "loss" and "mean_steps" do not show, each once, gates and shares
/// first.
std::vector<TrainingQuantity> further_quantities(std::span<const TrainingRecord> trainings);

/// The progress of a training, or why it failed; empty: the training has ended.
QString training_state(const TrainingInfo& training);

/// A running mean without a bias towards its beginning: m_i = Σ_j w^(i-j) x_j / Σ_j w^(i-j). A NaN stays NaN
/// and does not count.
std::vector<double> smoothed(std::span<const double> values, double weight);

} // namespace ponderscope
