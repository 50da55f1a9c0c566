// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/tap.h"
#include "core/ponder/halting/halting.h"
#include "core/ponder/method.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string_view>

namespace ponderscope {

/// Observes a run of steps. Also computes expected embeddings, because one pass over the vocabulary gives
/// both the embeddings and the recorded read-out.
class RunListener : public TapListener {
public:
    [[nodiscard]] bool wants(std::string_view name) const override {
        (void)name;
        return false;
    }
    void on_tensor(std::string_view, std::int64_t, std::int64_t, const at::Tensor&) override {}
    /// Expected embeddings [n, d] of the slots' states, not scaled. By default:
    /// ponderscope::expected_embedding() if a gradient is needed, otherwise read_out().
    virtual at::Tensor expected_embedding(const Slots& slots, const HeadWeights& head,
                                          const MixtureWish& wish);
    /// Called before slots run. \p slots: tokens, step and input are set.
    virtual void step_begins(const Slots& slots) { (void)slots; }
    /// Called after slots ran and the method decided. \p readout: [n, d], the read-out of each token if it
    /// stops here.
    virtual void step_ran(const Slots& slots, const Decision& decision, const at::Tensor& readout) {
        (void)slots, (void)decision, (void)readout;
    }
};

/// The output of each token: Σ of mass times state if Method::mixes_states(), otherwise the last state.
class Readout {
public:
    Readout(bool mixes, std::int64_t tokens) : mixes_(mixes), tokens_(tokens) {}
    /// The head's input for the tokens of \p slots if they stop here.
    [[nodiscard]] at::Tensor if_stopped(const Slots& slots, const Decision& decision) const;
    /// Adds a step. \p stopped: if_stopped() of these slots. \p running: bool [n], rows whose read-out is not
    /// yet chosen; undefined: all.
    void add(const Slots& slots, const Decision& decision, const at::Tensor& stopped,
             const at::Tensor& running = {});
    [[nodiscard]] at::Tensor output(at::ScalarType type) const { return output_.to(type); }

private:
    [[nodiscard]] at::Tensor empty_like(const at::Tensor& rows) const;

    bool mixes_;
    std::int64_t tokens_; ///< N of the run
    at::Tensor sum_, output_;
};

/// The data that all walks of a run share.
struct WalkParts {
    const Method& method;
    HeadWeights head;
    std::int64_t tokens = 0;           ///< N of the run
    const HaltingRule* rule = nullptr; ///< nullptr: the method's own rule
    const TokenPlaces* places = nullptr;
    RunListener* listener = nullptr;
    /// Maps a state of the slots to the input of the head; empty: the state itself.
    std::function<at::Tensor(const at::Tensor&, const Slots&)> read = {};
    bool selects = false; ///< a stopped token runs on, but is read out at the step where it stopped
    /// int64 [N]: StepsOptions::numbers.
    at::Tensor numbers = {};
};

/// Follows tokens from slot to slot: reads the method's decision after slot (t, k), chooses the tokens that
/// continue, and makes the input of slot (t, k + 1). The caller computes the states, in one pass for each
/// step or in one pass over all slots.
///
/// Call begin(), then for each step: ran(), [goes_on()], make_inputs().
class Walk {
public:
    explicit Walk(WalkParts parts)
        : parts_(std::move(parts)), readout_(parts_.method.mixes_states(), parts_.tokens) {}

    /// Starts with slots (t, 0). \p tokens as in Slots. \p carry: the method's carry at step 0. \p before:
    /// the state before step 0.
    void begin(const at::Tensor& tokens, const at::Tensor& input, const at::Tensor& carry = {},
               const at::Tensor& before = {});
    /// Takes the outputs of Method::wanted_blocks(). Call it before ran().
    void take_blocks(std::vector<at::Tensor> blocks) { slots_.blocks = std::move(blocks); }
    /// Call after the slots ran. Computes the method's decision, adds the step to the read-out and calls the
    /// listener.
    void ran(const at::Tensor& hidden, const at::Tensor& stream = {});
    /// Applies the run's halting rule and keeps the tokens that continue. Do not call it at the last step.
    /// False: no token continues, and the walk keeps its rows. Waits for the device if tokens may stop.
    [[nodiscard]] bool goes_on();
    /// Keeps only these rows (int64, ascending).
    void keep(const at::Tensor& rows);
    /// Moves to the next step. Then slots().input has this step's inputs, and key_bias() its keys' biases.
    void make_inputs();
    /// Moves to the next step with given inputs.
    void take_inputs(const at::Tensor& input);

    [[nodiscard]] const Slots& slots() const { return slots_; }
    [[nodiscard]] const Decision& decision() const { return decision_; }
    [[nodiscard]] const at::Tensor& key_bias() const { return key_bias_; }
    /// With WalkParts::selects: bool [n], true for tokens whose read-out is not chosen yet; undefined: all.
    [[nodiscard]] const at::Tensor& running() const { return running_; }
    [[nodiscard]] const Readout& readout() const { return readout_; }

private:
    /// The tokens that continue: bool [n]; undefined: all.
    [[nodiscard]] at::Tensor choose();
    /// The slots for the listener: `tokens` are entries of WalkParts::numbers, if it is defined.
    [[nodiscard]] Slots numbered() const;
    void step();

    WalkParts parts_;
    Readout readout_;
    Slots slots_;
    Decision decision_;
    at::Tensor stopped_;  ///< read-outs of the slots if they stop here
    at::Tensor key_bias_; ///< biases of the next slots' keys; undefined: none
    at::Tensor previous_hidden_, previous_readout_, rule_carry_;
    at::Tensor running_;
};

} // namespace ponderscope
