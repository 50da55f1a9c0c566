// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/writer.h"
#include "core/train/held_out.h"
#include "core/train/trainer.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// training.ponder: the log of a training as a trace without runs. Other processes can read each row
/// immediately. After a disk error, the next call throws EnvironmentError, as in TraceWriter.
class TrainingTrace {
public:
    /// \p info: id and totals are ignored. \p resume_after: continue the existing file and remove its rows
    /// after this step. If the file lacks this training (another recipe, or no content), starts a new
    /// training and reports a \p notice. InputError: the file is not a trace.
    TrainingTrace(const std::filesystem::path& path, TrainingInfo info,
                  std::vector<TrainingQuantity> quantities, std::optional<std::int64_t> resume_after,
                  const std::function<void(const std::string&)>& notice);

    /// Adds a row of the log. \p census: statistics on the held-out text at this step, added if present.
    void append(const TrainLogRow& row, const StepCensus* census);
    /// No row can be added afterwards. \p fault: why the training ended early; empty: all steps ran.
    void end(const std::string& fault = {});

private:
    std::optional<TraceWriter> writer_;
    std::int64_t training_ = 0;
};

/// Descriptions of the quantities in a log row, for a model with K = \p max_steps.
std::vector<TrainingQuantity> training_quantities(std::int64_t max_steps, bool halts, bool penalty,
                                                  bool held_out);

} // namespace ponderscope
