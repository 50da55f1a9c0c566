// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/tap.h"
#include "core/ponder/choices/run_plan.h"
#include "core/ponder/schedule/visibility.h"
#include "core/trace/records.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ponderscope {

/// The form of recorded sequence attention: fp16 [token, step, layer, head, back], and where a query sees
/// more than one slot of a token [token, step, layer, head, key_step, back]. `layer` and `head` count the
/// chosen ones, `back` the tokens from the query's to the key's. 0 where there is no such slot; the Recorder
/// marks what did not run.
struct AttentionForm {
    std::int64_t steps = 1; ///< K + 1
    std::int64_t layers = 0, heads = 0;
    std::int64_t key_steps = 1; ///< K + 1 unless the visibility is per step

    AttentionForm(const AttentionChoice& choice, VisibilityRule rule, std::int64_t max_steps);
    /// Bytes of what one token gives to one token.
    [[nodiscard]] std::int64_t pair_bytes() const { return 2 * steps * layers * heads * key_steps; }
    [[nodiscard]] SignalInfo info(const AttentionChoice& choice) const;
};

/// Makes and keeps the attention weights of chosen layers and heads, which attend() never has all at once: a
/// product of its own, some queries at a time, so that beside the result nothing grows with the square of the
/// text. On any device. N tokens, M of them reported, none with a past in a cache.
class AttentionRecorder final : public TapListener {
public:
    /// \p reported: int64 [M], undefined: all N. \p longest: tokens of the longest sequence.
    AttentionRecorder(AttentionChoice choice, const AttentionForm& form, std::int64_t tokens,
                      const at::Tensor& reported, std::int64_t longest, at::Device device);

    [[nodiscard]] bool wants(std::string_view name) const override { return name == signal::attention; }
    void heard(std::string_view, std::int64_t, std::int64_t, const at::Tensor&) override {}
    void attends(const Attending& attending) override;

    [[nodiscard]] const at::Tensor& values() const { return values_; }

private:
    void learn_rows(const Attending& attending, const at::Tensor& tokens);
    /// Weights [b, heads, key_steps * back] of some queries.
    [[nodiscard]] at::Tensor weights(const Attending& attending, const at::Tensor& queries,
                                     const at::Tensor& ranges, const at::Tensor& tokens) const;

    AttentionChoice choice_;
    AttentionForm form_;
    std::int64_t longest_;
    at::Tensor heads_;                ///< int64 [heads]
    at::Tensor place_;                ///< int64 [N]: among the M, -1; undefined: all are reported
    at::Tensor row_token_, row_step_; ///< int64 [R]: whose keys the rows hold
    at::Tensor values_;
};

} // namespace ponderscope
