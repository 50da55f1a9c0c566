// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace ponderscope {

/// One line of a training's log.csv.
struct TrainLogRow {
    std::int64_t step = 0;   ///< steps done
    std::int64_t tokens = 0; ///< trained on so far
    double loss = 0;         ///< nats a token, mean over the steps since the line before
    double learning_rate = 0;
    double gradient_norm = 0;           ///< of the last step, before clipping
    std::optional<double> held_out_nll; ///< nats a token
    double seconds = 0;                 ///< of training so far, interruptions not counted
    std::optional<double> penalty = {}; ///< on steps, before lambda; mean over the same steps as the loss
    std::optional<double> mean_steps =
        {}; ///< K_t over all tokens, likewise; absent: the model does not ponder
};

/// log.csv: "step,tokens,loss,learning_rate,gradient_norm,held_out_nll,penalty,mean_steps,seconds", numbers
/// in the shortest form that reads back to the same value, a field left empty where there was no evaluation
/// or is no such number. Every row is on the disk's side when append returns.
class TrainLog {
public:
    /// A new file, or with \p resume_after an existing one cut back to the rows up to that step: what an
    /// interrupted training wrote after its last state is trained, and logged, again. InputError,
    /// EnvironmentError.
    explicit TrainLog(const std::filesystem::path& path,
                      std::optional<std::int64_t> resume_after = std::nullopt);

    void append(const TrainLogRow& row); ///< EnvironmentError: disk full

private:
    std::filesystem::path path_;
    std::ofstream file_;
};

} // namespace ponderscope
