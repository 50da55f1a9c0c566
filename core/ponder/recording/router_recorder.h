// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/choices/run_plan.h"
#include "core/ponder/method.h"
#include "core/ponder/recording/recorded_signals.h"
#include "core/ponder/recording/state_recorder.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Keeps what the routers of mixtures of experts choose. Signals [token, step, layer, ...]; `layer` counts
/// the layers that have experts. Where the layers are the steps there is no axis `step`.
class RouterRecorder final : public TapListener {
public:
    RouterRecorder(const ModelConfig& config, const Method& method, RecordedExperts what, std::int64_t count,
                   at::Device device);

    static std::vector<SignalInfo> infos(const ModelConfig& config, const Method& method,
                                         RecordedExperts what);
    /// Bytes that one token gives.
    static std::int64_t token_bytes(const ModelConfig& config, const Method& method, RecordedExperts what);

    /// Whose routers are heard next.
    void begin(const RecordedRows& rows) { rows_ = rows; }

    [[nodiscard]] bool wants(std::string_view name) const override;
    void heard(std::string_view name, std::int64_t step, std::int64_t layer,
               const at::Tensor& tensor) override;

    [[nodiscard]] const std::vector<std::pair<std::string, at::Tensor>>& values() const { return values_; }

private:
    void put(const char* name, std::int64_t step, std::int64_t layer, const at::Tensor& rows);

    ExpertsConfig config_;
    bool by_step_;
    RecordedRows rows_;
    std::vector<std::pair<std::string, at::Tensor>> values_;
};

} // namespace ponderscope
