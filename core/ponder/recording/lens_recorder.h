// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/ponder/recording/state_recorder.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Reads every layer that the steps run out, at every step, through the final norm and the head (the logit
/// lens). Layer and step are read out when they have run, so that no states pile up. Signals [token, step,
/// layer]; `layer` counts from the first layer that the steps run.
class LensRecorder final : public TapListener {
public:
    /// \p targets: int64 [count], -1: none; undefined: nothing has a target.
    LensRecorder(const Backbone& backbone, std::int64_t count, std::int64_t steps, at::Tensor targets);

    static std::vector<SignalInfo> infos(const ModelConfig& config);
    /// Bytes that one token gives.
    static std::int64_t token_bytes(const ModelConfig& config, std::int64_t steps);

    /// Whose states are heard next.
    void begin(const RecordedRows& rows) { rows_ = rows; }

    [[nodiscard]] bool wants(std::string_view name) const override { return name == "layer_output"; }
    [[nodiscard]] bool wants_layer(std::string_view name, std::int64_t layer) const override {
        return wants(name) && layer >= config_.core_begin() && layer < config_.core_end();
    }
    void heard(std::string_view name, std::int64_t step, std::int64_t layer,
               const at::Tensor& tensor) override;

    /// By name, in the order of infos(): fp32 or int64 [count, steps, layers].
    [[nodiscard]] const std::vector<std::pair<std::string, at::Tensor>>& values() const { return values_; }

private:
    const Backbone& backbone_;
    const ModelConfig& config_;
    at::Tensor targets_;
    RecordedRows rows_;
    std::vector<std::pair<std::string, at::Tensor>> values_;
};

} // namespace ponderscope
