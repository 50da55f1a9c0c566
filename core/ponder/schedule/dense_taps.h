// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/tap.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace ponderscope {

/// Collects the tensors of passes with slots of several steps, and passes them to a listener step by step, as
/// if every step had its own pass. A later pass replaces the tensors of slots that an earlier pass computed.
class DenseTaps final : public TapListener {
public:
    /// \p tokens: number of tokens. \p slots: slots of each token. \p listener: nullptr collects nothing.
    DenseTaps(TapListener* listener, std::int64_t tokens, std::int64_t slots)
        : listener_(listener), tokens_(tokens), slots_(slots) {}

    /// Which tensors of a pass are collected. Attention is expensive, so only the final pass collects it. If
    /// the final pass is not known in advance, an extra pass collects attention alone.
    enum class Hear : std::uint8_t { nothing, all_but_attention, all, attention };
    /// The tap for a pass over these slots: \p tokens and \p steps int64 [n].
    [[nodiscard]] Tap of_pass(const at::Tensor& tokens, const at::Tensor& steps, Hear hear);
    /// Whether the listener still needs a pass that collects attention.
    [[nodiscard]] bool lacks_attention() const;
    /// Passes all tensors of the slots of \p tokens (int64 [n], undefined: all) at \p step to the listener.
    void report(std::int64_t step, const at::Tensor& tokens) const;

    [[nodiscard]] bool wants(std::string_view name) const override;
    void on_tensor(std::string_view name, std::int64_t step, std::int64_t layer,
                   const at::Tensor& tensor) override;
    void attends(const Attending& attending) override;

private:
    TapListener* listener_;
    std::int64_t tokens_;
    std::int64_t slots_;
    at::Tensor pass_tokens_, pass_steps_;
    Hear hear_ = Hear::nothing;
    bool attention_heard_ = false;
    std::map<std::pair<std::string, std::int64_t>, at::Tensor> dense_; ///< [tokens * slots, ...], by layer
};

} // namespace ponderscope
