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

/// The slots (t, k) of one step that run together; n of them.
struct Slots {
    std::int64_t step = 0;
    bool last = false; ///< no step can follow (k = K)
    at::Tensor tokens; ///< int64 [n], ascending; undefined: all tokens in order
    at::Tensor input;  ///< [n, d]
    at::Tensor hidden; ///< [n, d], after the final norm; undefined before the step ran
    at::Tensor stream; ///< [n, d], the residual stream before the final norm, for methods that want it
    at::Tensor carry;  ///< [n, ...], state that the method carries from step to step; undefined: none
    at::Tensor before; ///< [n, d], at step 0: the state before, if there is one (a start state)
    std::vector<at::Tensor> blocks; ///< [n, d] each: outputs of the blocks in wanted_blocks()
};

/// A method's decision after slot (t, k): whether (t, k+1) runs, and the mass of h^k in the output in either
/// case.
struct Decision {
    at::Tensor value;     ///< fp32 [n], a gate or router value, recorded; undefined: none
    at::Tensor compared;  ///< fp32 [n], the number that the method's rule compares with its threshold;
                          ///< undefined: value
    at::Tensor go_on;     ///< bool [n]; undefined: every token continues
    at::Tensor mass_on;   ///< fp32 [n], mass of h^k if the token continues; undefined: 0
    at::Tensor mass_stop; ///< fp32 [n], when it stops; undefined: 1
    at::Tensor carry;     ///< [n, ...], for the next step
    /// fp32 [n], bias on the logits of the next slot's key, for every query; undefined: none
    at::Tensor next_key_bias;
    at::Tensor expected_mass; ///< fp32 [n], of h^k in the mean over all steps, recorded; undefined: none
    /// Further numbers worth recording, by the names that signals() declares: fp32 [n], of this step, or
    /// [n, K + 1], of all steps at once.
    std::vector<std::pair<const char*, at::Tensor>> notes;
};

/// The expected embedding Σ_v softmax(head(h) / temperature)_v · W_emb[v] of a slot, which the next slot's
/// input needs.
struct MixtureWish {
    double temperature = 1.0;
    std::int64_t top_k = 0; ///< 0: the whole vocabulary
};

/// A way to ponder. It defines five things: the input of slot (t, k); visibility; which tokens get a next
/// slot; the mass of each state in the output; its own signals. Immutable; all tensors may need gradients.
class Method {
public:
    explicit Method(const ModelConfig& config);
    virtual ~Method() = default;

    /// Whether step k is block k of the stack (layer_steps.h), and not another pass through it.
    [[nodiscard]] virtual bool layers_are_steps() const { return false; }

    [[nodiscard]] MethodKind kind() const { return config_.method; }
    /// The method's own exits choose the step that is read out, while every step runs (method_info.h).
    [[nodiscard]] bool exits_select() const;
    [[nodiscard]] std::int64_t max_steps() const { return max_steps_; } ///< K; 0 for vanilla
    /// c of methods.md section 4: the factor of embeddings and expected embeddings.
    [[nodiscard]] double embed_scale() const { return embed_scale_; }

    // 1. The input of slot (t, k).
    /// \p embedded: c·W_emb[x_t], [N, d], after the prelude if there is one; \p start: the start state [N,
    /// d], where the stack has one.
    [[nodiscard]] virtual at::Tensor first_input(const at::Tensor& embedded, const at::Tensor& start) const {
        (void)start;
        return embedded;
    }
    /// The state before step 0, with which step 0 is compared; undefined: none.
    [[nodiscard]] virtual at::Tensor state_before(const at::Tensor& embedded, const at::Tensor& start) const {
        (void)embedded;
        return start;
    }
    /// Blocks whose output decide() reads, ascending.
    [[nodiscard]] virtual const std::vector<std::int64_t>& wanted_blocks() const {
        static const std::vector<std::int64_t> none;
        return none;
    }
    /// Whether that step runs through the weights with adapters.
    [[nodiscard]] virtual bool adapts(std::int64_t step) const {
        (void)step;
        return false;
    }
    /// Whether next_input reads Slots::stream.
    [[nodiscard]] virtual bool wants_stream() const { return false; }
    /// Interleaved rule: next_input reads no result of a pass, so that all slots run in one pass.
    [[nodiscard]] virtual bool knows_inputs() const { return false; }
    /// Empty: next_input does not need an expected embedding.
    [[nodiscard]] virtual std::optional<MixtureWish> mixture() const { return std::nullopt; }
    /// The state whose expected embedding is computed, [n, d].
    [[nodiscard]] virtual at::Tensor mixture_state(const Slots& slots, const Decision& decision) const;
    /// \p slots continue; \p decision has their rows; \p expected is c times their expected embedding [n, d],
    /// if mixture() requests it.
    [[nodiscard]] virtual at::Tensor next_input(const Slots& slots, const Decision& decision,
                                                const at::Tensor& expected) const;

    // 2. Visibility.
    [[nodiscard]] virtual VisibilityRule visibility() const { return VisibilityRule::per_step; }

    // 3. and 4. Which tokens continue, and the masses. At the last step only mass_stop is read.
    [[nodiscard]] virtual bool halts() const {
        return false;
    } ///< whether decide() may ever stop a token before K
    [[nodiscard]] virtual bool mixes_states() const {
        return false;
    } ///< whether masses other than 1 at K_t occur
    [[nodiscard]] virtual Decision decide(const Slots& slots) const;

    // 5. Signals beside those that every method has.
    /// Whether to compute Decision::value also after the last step, where it has no effect.
    [[nodiscard]] virtual bool values_last_step() const { return false; }
    [[nodiscard]] virtual std::vector<SignalInfo> signals() const { return {}; }

    // Counting (methods.md section 11): FLOPs of making slot k+1's input from slot k's state, and of one
    // decision.
    [[nodiscard]] virtual std::int64_t input_flops() const { return 0; }
    [[nodiscard]] virtual std::int64_t decision_flops(std::int64_t step) const;

    // Training.
    /// The penalty on steps, fp32 scalar, that a loss adds times lambda; undefined: none.
    [[nodiscard]] virtual at::Tensor penalty(const TrainingRun&) const { return {}; }
    /// Whether the halting rule holds in training too; otherwise every slot runs then.
    [[nodiscard]] virtual bool halts_in_training() const { return true; }

protected:
    /// Decisions are computed in fp32, in every dtype of a run and under autocast: rounded, gates near a
    /// threshold flip, and a bias that every key carries is wrong for all queries.
    class Fp32Linear {
    public:
        Fp32Linear() = default;
        /// A parameter in fp32 is used directly, so that it can be trained.
        Fp32Linear(const at::Tensor& weight, const at::Tensor& bias);
        /// \p states [n, in]; fp32 [n, out]. \p rows of the weight, from \p first; negative: all.
        [[nodiscard]] at::Tensor operator()(const at::Tensor& states, std::int64_t first = 0,
                                            std::int64_t rows = -1) const;
        [[nodiscard]] const at::Tensor& weight() const { return weight_; }
        [[nodiscard]] const at::Tensor& bias() const { return bias_; }

    private:
        at::Tensor weight_; ///< [out, in]
        at::Tensor bias_;   ///< [out]
    };

    /// With another K than the config's.
    Method(const ModelConfig& config, std::int64_t max_steps);

    PonderConfig config_;
    std::int64_t hidden_size_ = 0; ///< of a slot's input and state: config.embed_dim
    std::int64_t vocab_size_ = 0;

    /// FLOPs of an expected embedding: head and mixture.
    [[nodiscard]] std::int64_t mixture_flops(std::int64_t top_k) const;

private:
    std::int64_t max_steps_ = 0;
    double embed_scale_ = 1.0;
};

/// A line of methods.def: how the method is made, and the tensors that it has beside the backbone's.
struct MethodEntry {
    MethodKind kind;
    /// The backbone outlives the method.
    std::unique_ptr<Method> (*make)(const ModelConfig& config, const Parameters& parameters,
                                    const Backbone& backbone);
    /// In the order in which they are saved; nullptr: none.
    std::vector<TensorSpec> (*tensors)(const ModelConfig& config) = nullptr;

    /// The entry of a method whose constructor takes some or all of (config, parameters, backbone).
    template <typename M>
    static MethodEntry of(MethodKind kind);
};

// One function a method, defined in its own file.
#define PONDERSCOPE_METHOD(name) MethodEntry name##_method();
#include "core/checkpoint/methods/methods.def"
#undef PONDERSCOPE_METHOD

/// InputError: this build does not run the method; the message lists those that it runs.
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
