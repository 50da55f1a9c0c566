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
#include <vector>

namespace ponderscope {

/// The tokens of a run that are read out: M of N. Without `tokens`, all tokens are read out.
struct ReportedTokens {
    at::Tensor tokens;      ///< int64 [M], ascending
    at::Tensor others;      ///< int64 [N - M]: tokens that are context only
    at::Tensor place;       ///< int64 [N]: index among the M tokens, -1: context; undefined without `tokens`
    std::int64_t count = 0; ///< M
    at::Tensor targets;     ///< int64 [M], -1: none; undefined: no token has a target
    std::int64_t longest = 0; ///< tokens of the longest window
};

/// The recorded slots of a step, and their indices among the recorded tokens.
struct RecordedRows {
    at::Tensor local; ///< int64: rows within the slots; undefined: all
    at::Tensor place; ///< int64: indices among the M recorded tokens; undefined: all in order
    bool empty = false;
};

/// Fills some signals of a run from the tensors of its layers. Writes only entries of steps that ran. The
/// Recorder sets the other entries.
class PartRecorder : public TapListener {
public:
    /// Call it before slots run. \p rows: the rows to record from tensors of these slots.
    void begin(const RecordedRows& rows) { rows_ = rows; }
    /// Called after the slots ran.
    virtual void step_ran(const Slots& slots) { (void)slots; }
    void on_tensor(std::string_view, std::int64_t, std::int64_t, const at::Tensor&) override {}

protected:
    /// The recorded rows of a tensor that has a row for each slot.
    [[nodiscard]] at::Tensor recorded(const at::Tensor& rows) const;
    /// Writes recorded rows to their indices in \p column, [M, ...].
    void put(at::Tensor column, const at::Tensor& values) const;

    RecordedRows rows_;
};

/// The tensors of signals by name, [M, ...] as recorded_signals declares them.
using SignalTensors = std::map<std::string, at::Tensor>;

/// The recorders that the plan needs for all signals except read-outs of steps. Each recorder keeps handles
/// of the tensors that it fills.
std::vector<std::unique_ptr<PartRecorder>> part_recorders(const Backbone& backbone, const Method& method,
                                                          const RunPlan& plan, const ReportedTokens& reported,
                                                          const SignalTensors& signals);

/// Records the attention weights of chosen layers and heads. attend() never has the whole matrix of weights,
/// so this recorder computes the weights itself, for some queries at a time. Only the result grows with the
/// square of the text length. The last axis of \p values, `back`, is the distance from key to query in
/// tokens. Supports only tokens without a past in a cache. \p place: ReportedTokens::place.
std::unique_ptr<PartRecorder> attention_recorder(const AttentionChoice& choice, const at::Tensor& values,
                                                 const at::Tensor& place);

} // namespace ponderscope
