// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"
#include "core/model/depth_sources.h"
#include "core/model/tap.h"
#include "core/trace/records.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Hears what depth mixing weighs, and keeps it for the reported tokens: the weights are computed in any
/// case. M reported tokens, K + 1 steps. Entries of steps that did not run are 0 here; the Recorder marks
/// them.
class DepthRecorder final : public TapListener {
public:
    DepthRecorder(ModelConfig config, std::int64_t reported, std::int64_t steps,
                  const at::TensorOptions& options);
    /// What a model with this config gives; nothing without depth mixing.
    static std::vector<SignalInfo> infos(const ModelConfig& config);

    [[nodiscard]] bool wants(std::string_view name) const override;
    void heard(std::string_view name, std::int64_t step, std::int64_t layer,
               const at::Tensor& tensor) override;
    /// Puts what was heard since the last call to its step and tokens. Of the \p slots rows of that pass,
    /// \p local are reported (undefined: all), at \p place among the M (undefined: all in order).
    void place(std::int64_t slots, std::int64_t step, const at::Tensor& local, const at::Tensor& place);
    /// The same when nothing of that pass is reported.
    void forget() { waiting_.clear(); }

    /// fp32, by signal: [M, K + 1, ...] as `infos` says.
    [[nodiscard]] const std::vector<std::pair<std::string, at::Tensor>>& values() const { return values_; }

private:
    struct Heard {
        std::size_t signal;
        std::int64_t layer;
        at::Tensor tensor;
    };
    [[nodiscard]] at::Tensor spread(std::int64_t step, std::int64_t layer, const at::Tensor& weights) const;

    ModelConfig config_;
    DepthColumns columns_;
    at::TensorOptions options_;
    std::vector<std::pair<std::string, at::Tensor>> values_;
    std::vector<Heard> waiting_;
};

} // namespace ponderscope
