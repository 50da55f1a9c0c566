// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/tap.h"
#include "core/ponder/choices/run_plan.h"
#include "core/ponder/method.h"
#include "core/trace/records.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// The form of recorded states: fp16 [token, step, dim], or [token, step, layer, dim] where layers are named.
/// `layer` counts the chosen ones.
struct StateForm {
    std::int64_t steps = 1; ///< K + 1
    std::int64_t layers = 0;
    std::int64_t width = 0;

    StateForm(const StateChoice& choice, const ModelConfig& config, const Method& method);
    /// Bytes of what one token gives.
    [[nodiscard]] std::int64_t token_bytes() const {
        return 2 * steps * std::max<std::int64_t>(layers, 1) * width;
    }
    [[nodiscard]] SignalInfo info(const StateChoice& choice, const std::string& states) const;
};

/// Which rows of the slots of a step are kept, and where.
struct RecordedRows {
    at::Tensor local; ///< int64: rows of the slots; undefined: all
    at::Tensor place; ///< int64: among those that are recorded; undefined: all in order
    bool empty = false;
};

/// Keeps states as they come.
class StateRecorder final : public TapListener {
public:
    StateRecorder(StateChoice choice, const StateForm& form, std::int64_t count, at::Device device);

    /// Whose states are heard next.
    void begin(const RecordedRows& rows) { rows_ = rows; }
    /// The state of a step, [n, d].
    void step_ran(std::int64_t step, const at::Tensor& hidden);

    [[nodiscard]] bool wants(std::string_view name) const override {
        return name == "layer_output" && !choice_.layers.empty();
    }
    [[nodiscard]] bool wants_layer(std::string_view name, std::int64_t layer) const override;
    void heard(std::string_view name, std::int64_t step, std::int64_t layer,
               const at::Tensor& tensor) override;

    [[nodiscard]] const at::Tensor& values() const { return values_; }

private:
    StateChoice choice_;
    RecordedRows rows_;
    at::Tensor values_;
};

} // namespace ponderscope
