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

/// Which slots of a step are recorded, and their indices among the recorded tokens.
struct RecordedRows {
    at::Tensor local; ///< int64: rows within the slots; undefined: all
    at::Tensor place; ///< int64: indices among the M recorded tokens; undefined: all in order
    bool empty = false;
};

/// Fills some signals of a run from the results of its layers. Does not touch the entries of steps that did
/// not run; the Recorder marks them.
class PartRecorder : public TapListener {
public:
    /// Call it before slots run: sets the rows of the next tensors.
    void begin(const RecordedRows& rows) { rows_ = rows; }
    /// Called after the slots ran.
    virtual void step_ran(const Slots& slots) { (void)slots; }
    void on_tensor(std::string_view, std::int64_t, std::int64_t, const at::Tensor&) override {}

protected:
    /// The recorded rows of \p rows.
    [[nodiscard]] at::Tensor recorded(const at::Tensor& rows) const;
    /// Writes recorded rows to their indices in \p column, [M, ...].
    void put(at::Tensor column, const at::Tensor& values) const;

    RecordedRows rows_;
};

/// The tensors of signals by name, [M, ...] as recorded_signals declares them.
using SignalTensors = std::map<std::string, at::Tensor>;

/// Records the weights of depth mixing, which are computed anyway.
std::unique_ptr<PartRecorder> depth_recorder(const ModelConfig& config, const SignalTensors& signals);
/// Records the attention weights of chosen layers and heads. attend() never computes the whole matrix, so
/// this recorder computes the product itself, for some queries at a time. Only the result grows with the
/// square of the text length. \p values counts `back` from the query's token to the key's. \p tokens: N,
/// without a past in a cache. \p reported: int64 [M]; undefined: all N tokens.
std::unique_ptr<PartRecorder> attention_recorder(const AttentionChoice& choice, const at::Tensor& values,
                                                 std::int64_t tokens, const at::Tensor& reported);
/// Reads out every layer at every step through the final norm and the head (the logit lens). Reads a layer
/// out as soon as it has run, so that states do not accumulate. \p targets: int64 [M], -1: none; undefined:
/// no token has a target.
std::unique_ptr<PartRecorder> lens_recorder(const Backbone& backbone, const SignalTensors& signals,
                                            const at::Tensor& targets);
/// Records the choices of the routers of mixtures of experts. \p by_step: signals have an axis of steps.
std::unique_ptr<PartRecorder> router_recorder(const ExpertsConfig& config, bool by_step,
                                              const SignalTensors& signals);
std::unique_ptr<PartRecorder> state_recorder(const StateChoice& choice, const at::Tensor& values);

} // namespace ponderscope
