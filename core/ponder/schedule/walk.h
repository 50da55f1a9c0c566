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

/// Observes a run of steps and supplies the expected embeddings, because one pass over the vocabulary makes
/// them and the recorded read-out.
class RunListener : public TapListener {
public:
    [[nodiscard]] bool wants(std::string_view name) const override {
        (void)name;
        return false;
    }
    void on_tensor(std::string_view, std::int64_t, std::int64_t, const at::Tensor&) override {}
    /// Expected embeddings [n, d] of the slots' states, not scaled. Default: the differentiable one if a
    /// gradient is needed, else read_out.
    virtual at::Tensor expected_embedding(const Slots& slots, const HeadWeights& head,
                                          const MixtureWish& wish);
    /// Called before slots run. \p slots: tokens, step and input are set.
    virtual void step_begins(const Slots& slots) { (void)slots; }
    /// Called after slots ran and their method answered. \p readout: [n, d], the read-out of each token as if
    /// it stopped here.
    virtual void step_ran(const Slots& slots, const Decision& decision, const at::Tensor& readout) {
        (void)slots, (void)decision, (void)readout;
    }
};

/// Σ of mass times state, a token. Only methods whose masses are not 1 at K_t keep the sum; for the others
/// the last state is the output.
class Readout {
public:
    Readout(bool mixes, std::int64_t tokens) : mixes_(mixes), tokens_(tokens) {}
    /// The state from which the tokens of \p slots are read out if they stop here.
    [[nodiscard]] at::Tensor if_stopped(const Slots& slots, const Decision& decision) const;
    /// Adds a step: \p stopped is if_stopped of the same slots. \p running: bool [n], rows whose read-out is
    /// not yet chosen; undefined: all.
    void add(const Slots& slots, const Decision& decision, const at::Tensor& stopped,
             const at::Tensor& running = {});
    [[nodiscard]] at::Tensor output(at::ScalarType type) const { return output_.to(type); }

private:
    [[nodiscard]] at::Tensor empty_like(const at::Tensor& rows) const;

    bool mixes_;
    std::int64_t tokens_; ///< N of the run
    at::Tensor sum_, output_;
};

/// Shared data of all walks of a run.
struct WalkParts {
    const Method& method;
    HeadWeights head;
    std::int64_t tokens = 0;           ///< N of the run
    const HaltingRule* rule = nullptr; ///< nullptr: the method's own
    const TokenPlaces* places = nullptr;
    RunListener* listener = nullptr;
    /// Maps a state of the slots to the input of the head; empty: the state itself.
    std::function<at::Tensor(const at::Tensor&, const Slots&)> read = {};
    bool selects = false; ///< a stopped token keeps running and is read out at its last step
};

/// Follows tokens from slot to slot: reads the method's decision after slot (t, k), chooses the tokens that
/// continue, and makes the input of slot (t, k + 1). The caller computes the states: one pass for each step,
/// or one pass over all slots.
///
///   begin, then for each step: ran, [goes_on], make_inputs.
class Walk {
public:
    explicit Walk(WalkParts parts)
        : parts_(std::move(parts)), readout_(parts_.method.mixes_states(), parts_.tokens) {}

    /// Slots (t, 0). \p tokens as in Slots; \p carry: the method's carry at step 0; \p before: the state
    /// before.
    void begin(const at::Tensor& tokens, const at::Tensor& input, const at::Tensor& carry = {},
               const at::Tensor& before = {});
    /// Outputs of the method's wanted blocks, before ran().
    void take_blocks(std::vector<at::Tensor> blocks) { slots_.blocks = std::move(blocks); }
    /// The slots ran: the method decides, the read-out adds the step, the listener is called.
    void ran(const at::Tensor& hidden, const at::Tensor& stream = {});
    /// Applies the run's halting rule and keeps the tokens that continue. Not called at the last step. False:
    /// no token continues, and the walk keeps its rows. If tokens may stop, the host waits here for the
    /// device, once a step.
    [[nodiscard]] bool goes_on();
    /// Only these rows (int64, ascending) stay in the walk.
    void keep(const at::Tensor& rows);
    /// On to the next step: its inputs are in slots().input, and its keys' biases in key_bias().
    void make_inputs();
    /// On to the next step with inputs that were made before.
    void take_inputs(const at::Tensor& input);

    [[nodiscard]] const Slots& slots() const { return slots_; }
    [[nodiscard]] const Decision& decision() const { return decision_; }
    [[nodiscard]] const at::Tensor& key_bias() const { return key_bias_; }
    /// Where read-outs are selected: bool [n], true for tokens whose read-out is not chosen yet; undefined:
    /// all.
    [[nodiscard]] const at::Tensor& running() const { return running_; }
    [[nodiscard]] const Readout& readout() const { return readout_; }

private:
    /// The tokens that continue: bool [n]; undefined: all.
    [[nodiscard]] at::Tensor choose();
    void step();

    WalkParts parts_;
    Readout readout_;
    Slots slots_;
    Decision decision_;
    at::Tensor stopped_;  ///< read-outs of the slots, as if they stopped here
    at::Tensor key_bias_; ///< of the slots that are next; undefined: none
    at::Tensor previous_hidden_, previous_readout_, rule_carry_;
    at::Tensor running_;
};

} // namespace ponderscope
