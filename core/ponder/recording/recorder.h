// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/choices/request.h"
#include "core/ponder/recording/part_recorders.h"
#include "core/ponder/recording/recorded_signals.h"
#include "core/ponder/schedule/steps.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// Reads tokens out during a run and keeps the signals of the record level on the device. Steps that did not
/// run have the value NaN, or did_not_run (records.h) in integer signals.
class Recorder final : public RunListener {
public:
    Recorder(const Backbone& backbone, const Method& method, const RunPlan& plan, RecordLevel level,
             ReportedTokens reported);

    at::Tensor expected_embedding(const Slots& slots, const HeadWeights& head,
                                  const MixtureWish& wish) override;
    [[nodiscard]] bool wants(std::string_view name) const override;
    [[nodiscard]] bool wants_layer(std::string_view name, std::int64_t layer) const override;
    void on_tensor(std::string_view name, std::int64_t step, std::int64_t layer,
                   const at::Tensor& tensor) override;
    void attends(const Attending& attending) override;
    void step_begins(const Slots& slots) override;
    void step_ran(const Slots& slots, const Decision& decision, const at::Tensor& readout) override;
    /// Reads out the output. Call it once, after run_steps.
    void finish(const StepsResult& result);

    /// The final read-outs of the reported tokens, [M]. At level nll only nll and rank are defined.
    HeadResult output;
    /// A recorded signal: [M, RecordedSignal::shape], int64, fp32 or (RecordedSignal::half) fp16.
    struct Signal {
        SignalInfo info;
        at::Tensor values;
    };
    [[nodiscard]] const std::vector<Signal>& signals() const { return signals_; }
    at::Tensor steps;     ///< int64 [N], K_t; undefined: K everywhere
    bool all_ran = false; ///< StepsResult::all_ran

private:
    /// The reported rows of slots, and their indices among the M tokens.
    const RecordedRows& rows_of(const at::Tensor& tokens);
    void read_output(const StepsResult& result);
    void set_unrun_steps_to_nan();
    [[nodiscard]] HeadRequest request(const RecordedRows& rows, std::int64_t step) const;
    void follow_answers(const at::Tensor& last);
    [[nodiscard]] at::Tensor kept(const at::Tensor& all, const at::Tensor& place,
                                  const at::Tensor& values) const;
    void put_masses(const RecordedRows& rows, const Slots& slots, const Decision& decision);
    void keep(const HeadResult& result, const at::Tensor& place, std::int64_t step);
    void put_last(const HeadResult& result, const at::Tensor& last);
    void put(const char* name, const at::Tensor& place, std::int64_t step, const at::Tensor& values);
    at::Tensor* find(const char* name);

    const Backbone& backbone_;
    const Method& method_;
    RecordLevel level_;
    at::Tensor rows_of_; ///< argument of the last rows_of() call, which returned rows_
    std::optional<RecordedRows> rows_;
    ReportedTokens reported_;
    bool free_steps_;  ///< the expected embedding's pass over the vocabulary also reads the step out
    bool extra_steps_; ///< steps are read out only because signals need the read-outs
    std::vector<Signal> signals_;
    std::vector<std::unique_ptr<PartRecorder>> parts_;
    at::Tensor state_;    ///< [M, d]: h of each reported token's last step
    at::Tensor update_;   ///< fp32 [M, d]: the last update of the state
    at::Tensor expected_; ///< fp32 [M, d]: sum of state · expected_mass over the steps so far
    at::Tensor mass_on_;  ///< [M]: Decision::mass_on of each token's last step
    at::Tensor readout_, earlier_readout_; ///< read-outs of each token's last step and of the step before
};

} // namespace ponderscope
