// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/ponder/choices/run_plan.h"
#include "core/ponder/training.h"
#include "core/trace/records.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace ponderscope {

/// The n slots (t, k) of one step k, which run together.
struct Slots {
    std::int64_t step = 0;
    bool last = false; ///< no step follows (k = K)
    at::Tensor tokens; ///< int64 [n], ascending; undefined: all tokens in order
    at::Tensor input;  ///< [n, d]
    at::Tensor hidden; ///< [n, d], after the final norm; undefined before the step ran
    at::Tensor stream; ///< [n, d], the residual stream before the final norm; defined if wants_stream()
    at::Tensor carry;  ///< [n, ...], the method's state between steps; undefined: none
    at::Tensor before; ///< [n, d], only at step 0: the state before step 0, if the stack has a start state
    std::vector<at::Tensor> blocks; ///< [n, d] each: outputs of the blocks in wanted_blocks()
};

/// A method's decision after slot (t, k): whether slot (t, k+1) runs, and the mass of h^k in the output.
struct Decision {
    at::Tensor value;     ///< fp32 [n], the recorded gate or router value; undefined: none
    at::Tensor compared;  ///< fp32 [n], number that is compared with the threshold; undefined: `value`
    at::Tensor go_on;     ///< bool [n]; undefined: every token continues
    at::Tensor mass_on;   ///< fp32 [n], mass of h^k if the token continues; undefined: 0
    at::Tensor mass_stop; ///< fp32 [n], mass of h^k if the token stops; undefined: 1
    at::Tensor carry;     ///< [n, ...], becomes Slots::carry at the next step
    /// fp32 [n], added to the attention logits of the next slot's key, for every query; undefined: none
    at::Tensor next_key_bias;
    at::Tensor expected_mass; ///< fp32 [n], weight of h^k for `expected_nll`; undefined: none
    /// Additional recorded numbers with the names that signals() declares: fp32 [n] for this step, or for all
    /// steps at once [n, K + 1].
    std::vector<std::pair<const char*, at::Tensor>> notes;
};

/// Options of a slot's expected embedding Σ_v softmax(head(h) / temperature)_v · W_emb[v] for next_input().
struct MixtureWish {
    double temperature = 1.0;
    std::int64_t top_k = 0; ///< 0: the whole vocabulary
};

/// A pondering method. It defines the input of slot (t, k), the visibility, the tokens that get a next slot,
/// the mass of each state in the output, and its own signals. Immutable. All tensors may require gradients.
class Method {
public:
    explicit Method(const ModelConfig& config);
    virtual ~Method() = default;

    /// Whether step k is block k of the stack (layer_steps.h) instead of another pass through the stack.
    [[nodiscard]] virtual bool layers_are_steps() const { return false; }

    [[nodiscard]] MethodKind kind() const { return config_.method; }
    /// Whether the method's exits choose the step that is read out, while every step runs (method_info.h).
    [[nodiscard]] bool exits_select() const;
    [[nodiscard]] std::int64_t max_steps() const { return max_steps_; } ///< K; 0 for vanilla
    /// c of methods.md section 4: the factor on embeddings and expected embeddings.
    [[nodiscard]] double embed_scale() const { return embed_scale_; }

    // 1. The input of slot (t, k).
    /// \p embedded: c·W_emb[x_t], [N, d], after the prelude if there is one. \p start: the start state [N,
    /// d], if the stack has one.
    [[nodiscard]] virtual at::Tensor first_input(const at::Tensor& embedded,
                                                 const at::Tensor& /*start*/) const {
        return embedded;
    }
    /// The state before step 0, for the comparison with step 0; undefined: none.
    [[nodiscard]] virtual at::Tensor state_before(const at::Tensor& /*embedded*/,
                                                  const at::Tensor& start) const {
        return start;
    }
    /// Blocks whose outputs decide() reads, ascending.
    [[nodiscard]] virtual const std::vector<std::int64_t>& wanted_blocks() const {
        static const std::vector<std::int64_t> none;
        return none;
    }
    /// Whether the step uses the weights with adapters.
    [[nodiscard]] virtual bool adapts(std::int64_t /*step*/) const { return false; }
    /// Whether next_input reads Slots::stream.
    [[nodiscard]] virtual bool wants_stream() const { return false; }
    /// Interleaved rule: next_input does not read the states, so all slots can run in one pass.
    [[nodiscard]] virtual bool knows_inputs() const { return false; }
    /// Options of the expected embedding that next_input needs; empty: none.
    [[nodiscard]] virtual std::optional<MixtureWish> mixture() const { return std::nullopt; }
    /// The state from which the expected embedding is computed, [n, d].
    [[nodiscard]] virtual at::Tensor mixture_state(const Slots& slots, const Decision&) const {
        return slots.hidden;
    }
    /// The inputs [n, d] of the next slots. \p slots: the slots that continue. \p decision: the decision for
    /// these slots. \p expected: c times their expected embeddings [n, d], if mixture() has a value.
    [[nodiscard]] virtual at::Tensor next_input(const Slots& slots, const Decision& decision,
                                                const at::Tensor& expected) const {
        (void)decision, (void)expected;
        return slots.hidden;
    }

    // 2. Visibility.
    [[nodiscard]] virtual VisibilityRule visibility() const { return VisibilityRule::per_step; }

    // 3. and 4. The tokens that continue, and the masses. The last step uses mass_stop only.
    [[nodiscard]] virtual bool halts() const { return false; } ///< whether decide() may stop a token before K
    /// Whether the output is a sum of several states, weighted by masses. False: the state of step K_t.
    [[nodiscard]] virtual bool mixes_states() const { return false; }
    [[nodiscard]] virtual Decision decide(const Slots&) const { return {}; }

    // 5. The method's own signals.
    /// Whether to compute Decision::value also after the last step, where the value has no effect.
    [[nodiscard]] virtual bool values_last_step() const { return false; }
    [[nodiscard]] virtual std::vector<SignalInfo> signals() const { return {}; }

    // FLOPs (methods.md section 11) of making slot k+1's input from slot k's state, and of one decision.
    [[nodiscard]] virtual std::int64_t input_flops() const { return 0; }
    [[nodiscard]] virtual std::int64_t decision_flops(std::int64_t /*step*/) const { return 0; }

    // Training.
    /// The penalty on steps, fp32 scalar; the loss adds it times lambda. Undefined: none.
    [[nodiscard]] virtual at::Tensor penalty(const TrainingRun&) const { return {}; }
    /// Whether the halting rule applies in training. Otherwise every slot runs.
    [[nodiscard]] virtual bool halts_in_training() const { return true; }

protected:
    /// A linear layer for decisions: in fp32 for every dtype of a run and under autocast. Rounding would flip
    /// gates near a threshold, and an error in a key's bias would affect all queries.
    class Fp32Linear {
    public:
        Fp32Linear() = default;
        /// A parameter in fp32 is used without a copy, so that it can be trained.
        Fp32Linear(const at::Tensor& weight, const at::Tensor& bias);
        /// \p states [n, in]; returns fp32 [n, out]. Uses \p rows rows of the weight from \p first on.
        /// Negative \p rows: all rows.
        [[nodiscard]] at::Tensor operator()(const at::Tensor& states, std::int64_t first = 0,
                                            std::int64_t rows = -1) const;
        [[nodiscard]] const at::Tensor& weight() const { return weight_; }
        [[nodiscard]] const at::Tensor& bias() const { return bias_; }

    private:
        at::Tensor weight_; ///< [out, in]
        at::Tensor bias_;   ///< [out]
    };

    /// Uses \p max_steps as K in place of the config's K.
    Method(const ModelConfig& config, std::int64_t max_steps);

    PonderConfig config_;
    std::int64_t hidden_size_ = 0; ///< width of a slot's input and state: config.embed_dim
    std::int64_t vocab_size_ = 0;

    /// FLOPs of an expected embedding: head and mixture.
    [[nodiscard]] std::int64_t mixture_flops(std::int64_t top_k) const;

private:
    std::int64_t max_steps_ = 0;
    double embed_scale_ = 1.0;
};

/// A line of methods.def: the factory and the tensors of a method.
struct MethodEntry {
    MethodKind kind;
    /// The backbone must outlive the method.
    std::unique_ptr<Method> (*make)(const ModelConfig& config, const Parameters& parameters,
                                    const Backbone& backbone);
    /// The tensors that the method adds to the backbone's, in the order of saving; nullptr: none.
    std::vector<TensorSpec> (*tensors)(const ModelConfig& config) = nullptr;

    /// The entry of a method whose constructor takes (config), (config, parameters) or all three.
    template <typename M>
    static MethodEntry of(MethodKind kind);
};

// Each method defines this function in its own file.
#define PONDERSCOPE_METHOD(name) MethodEntry name##_method();
#include "core/checkpoint/methods/methods.def"
#undef PONDERSCOPE_METHOD

/// InputError: this build does not run the method; the message lists the supported methods.
const MethodEntry& method_entry(MethodKind kind);
std::unique_ptr<Method> make_method(const ModelConfig& config, const Parameters& parameters,
                                    const Backbone& backbone);
std::vector<TensorSpec> method_tensors(const ModelConfig& config);

template <typename M>
MethodEntry MethodEntry::of(MethodKind kind) {
    MethodEntry entry{
        kind,
        [](const ModelConfig& config, const Parameters& parameters,
           const Backbone& backbone) -> std::unique_ptr<Method> {
            if constexpr (std::is_constructible_v<M, const ModelConfig&, const Parameters&,
                                                  const Backbone&>) {
                return std::make_unique<M>(config, parameters, backbone);
            } else if constexpr (std::is_constructible_v<M, const ModelConfig&, const Parameters&>) {
                return std::make_unique<M>(config, parameters);
            } else {
                return std::make_unique<M>(config);
            }
        }};
    if constexpr (requires(const ModelConfig& config) { M::tensors(config); }) {
        entry.tensors = &M::tensors;
    }
    return entry;
}

} // namespace ponderscope
