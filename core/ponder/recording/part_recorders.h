// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/model/tap.h"
#include "core/ponder/choices/run_plan.h"
#include "core/ponder/method.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ponderscope {

/// Which rows of the slots of a step are recorded, and where.
struct RecordedRows {
    at::Tensor local; ///< int64: rows of the slots; undefined: all
    at::Tensor place; ///< int64: among the M recorded tokens; undefined: all in order
    bool empty = false;
};

/// Fills some signals of a run from the results of its layers. Entries of steps that did not run are left:
/// the Recorder marks them.
class PartRecorder : public TapListener {
public:
    /// Before slots run: whose tensors are heard next.
    void begin(const RecordedRows& rows) { rows_ = rows; }
    /// After they ran.
    virtual void step_ran(const Slots& slots) { (void)slots; }
    void on_tensor(std::string_view, std::int64_t, std::int64_t, const at::Tensor&) override {}

protected:
    /// Rows of the slots as recorded.
    [[nodiscard]] at::Tensor recorded(const at::Tensor& rows) const;
    /// Puts recorded rows to their places in \p column, [M, ...].
    void put(at::Tensor column, const at::Tensor& values) const;

    RecordedRows rows_;
};

/// The tensors of signals by their names, [M, ...] as recorded_signals declares them.
using SignalTensors = std::map<std::string, at::Tensor>;

/// What depth mixing weighs; the weights are computed in any case.
std::unique_ptr<PartRecorder> depth_recorder(const ModelConfig& config, const SignalTensors& signals);
/// The attention weights of chosen layers and heads, which attend() never has all at once: a separate
/// product, for some queries at a time, so that only the result grows with the square of the text. \p values
/// counts `back` from the query's token to the key's. \p tokens: N, none with a past in a cache; \p reported:
/// int64 [M], undefined: all N.
std::unique_ptr<PartRecorder> attention_recorder(const AttentionChoice& choice, const at::Tensor& values,
                                                 std::int64_t tokens, const at::Tensor& reported);
/// Reads out every layer at every step through the final norm and the head (the logit lens), as soon as the
/// layer has run, so that no states accumulate. \p targets: int64 [M], -1: none; undefined: nothing has a
/// target.
std::unique_ptr<PartRecorder> lens_recorder(const Backbone& backbone, const SignalTensors& signals,
                                            const at::Tensor& targets);
/// The choices of routers of mixtures of experts. \p by_step: signals have an axis of steps.
std::unique_ptr<PartRecorder> router_recorder(const ExpertsConfig& config, bool by_step,
                                              const SignalTensors& signals);
std::unique_ptr<PartRecorder> state_recorder(const StateChoice& choice, const at::Tensor& values);

} // namespace ponderscope
