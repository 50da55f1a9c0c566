// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/session.h"
#include "core/trace/writer.h"
#include "core/train/step_census.h"
#include "core/train/trainer.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// training.ponder: the log of a training as a trace. Its curves, and at a few places what the model did with
/// the beginning of the held-out text, as runs named RECIPE@STEP. Every row is readable by others as soon as
/// it is written, and whole or not there. A failure on the disk is an EnvironmentError of a later call, as in
/// TraceWriter.
class TrainingTrace {
public:
    /// \p info: id and totals are not used. \p resume_after: go on in the file that lies there, without what
    /// it has of later steps; a file without this training (another recipe's, or none) gets a new one, and
    /// \p notice says so. InputError: the file is not a trace.
    TrainingTrace(const std::filesystem::path& path, TrainingInfo info,
                  std::vector<TrainingQuantity> quantities, std::optional<std::int64_t> resume_after,
                  const std::function<void(const std::string&)>& notice);

    /// A row of the log; with \p census what was counted on the held-out text at that moment.
    void append(const TrainLogRow& row, const StepCensus* census);
    /// Runs the checkpoint in \p folder over \p passage on \p device in fp32, exactly as `ponderscope record
    /// --record basic` does, and keeps it as the run NAME@STEP.
    void record(const std::filesystem::path& folder, const SequenceInput& passage, const Tokenizer& tokenizer,
                std::int64_t context, std::int64_t step, const std::string& device);
    /// Nothing can be added afterwards. \p fault: what ended the training before its time; empty: nothing.
    void end(const std::string& fault = {});

private:
    std::string name_;
    std::optional<TraceWriter> writer_;
    std::int64_t training_ = 0;
};

/// What the curves of a training show: of a model with K = \p max_steps that halts or has gates or not.
std::vector<TrainingQuantity> training_quantities(std::int64_t max_steps, bool halts, bool penalty,
                                                  bool held_out);

/// The steps after which a training records the passage: \p count of them, evenly spread, the last one its
/// end.
bool is_snapshot(std::int64_t step, std::int64_t steps, std::int64_t count);

} // namespace ponderscope
