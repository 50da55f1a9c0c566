// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/halting/policy_halting.h"

#include "core/base/error.h"
#include "core/checkpoint/method_info.h"
#include "core/kernels/head.h"
#include "core/model/device.h"
#include "core/policy/policy.h"
#include "core/ponder/halting/halting.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ponderscope {
namespace {

class PolicyHalting final : public HaltingRule {
public:
    PolicyHalting(const PolicySpec& spec, const PolicyContext& context)
        : spec_(spec), max_steps_(context.max_steps), policy_(make_policy(spec, context)) {}

    [[nodiscard]] std::string name() const override { return spec_.text(); }
    [[nodiscard]] bool may_halt() const override { return spec_.kind->name != "full"; }
    [[nodiscard]] bool reads_head() const override { return spec_.kind->reads_head(); }
    [[nodiscard]] bool looks_back() const override {
        return needs(PolicySignal::kl) || needs(PolicySignal::cosine) || needs(PolicySignal::latent) ||
               needs(PolicySignal::acceleration);
    }

    /// Compares the policy's numbers for equal positions in two sequences of different lengths.
    [[nodiscard]] bool reads_places() const override {
        std::vector<TokenPlace> one;
        std::vector<TokenPlace> other;
        for (std::uint32_t position = 0; position < 64; ++position) {
            one.push_back({0, position, 64});
            other.push_back({1, position, 640});
        }
        std::vector<double> of_one(one.size());
        std::vector<double> of_other(other.size());
        policy_->per_token(one, of_one);
        policy_->per_token(other, of_other);
        return of_one != of_other;
    }

    [[nodiscard]] HaltingAnswer answer(const HaltingQuestion& question) const override {
        const std::int64_t k = question.slots.step;
        const std::int64_t n = question.slots.hidden.size(0);
        HaltingAnswer result;
        SignalColumns columns(max_steps_, static_cast<std::size_t>(n));
        const std::vector<PolicySignal>& wanted = spec_.kind->needs;
        std::vector<at::Tensor> looked_at = places_of(question);
        if (!wanted.empty()) {
            // The carry has the signals of earlier steps, [n, steps so far * signals]. For acceleration, the
            // last update of the state follows.
            const auto width = static_cast<std::int64_t>(wanted.size());
            at::Tensor history, move;
            if (question.carry.defined()) {
                history = question.carry.narrow(1, 0, k * width);
                move = question.carry.narrow(1, k * width, question.carry.size(1) - k * width);
            }
            const at::Tensor now = at::stack(measure(question, move), 1);
            history = history.defined() ? at::cat({history, now}, 1) : now;
            result.carry = move.defined() ? at::cat({history, move}, 1) : history;
            looked_at.push_back(history.view({n, k + 1, width}).permute({2, 1, 0}));
        }
        HostCopy host(looked_at);
        host.wait();
        if (!wanted.empty()) {
            const float* values = host.floats(looked_at.size() - 1);
            for (const PolicySignal signal : wanted) {
                columns.add(signal);
                for (std::int64_t step = 0; step <= k; ++step) {
                    std::copy_n(values, n, columns.column(signal, step).data());
                    values += n;
                }
            }
        }
        std::vector<TokenPlace> places(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < places.size(); ++i) {
            places[i] = {static_cast<std::uint32_t>(host.integers(0)[i]),
                         static_cast<std::uint32_t>(host.integers(1)[i]),
                         static_cast<std::uint32_t>(host.integers(2)[i])};
        }
        std::vector<double> numbers(places.size());
        policy_->per_token(places, numbers);
        std::vector<std::uint8_t> stop(places.size());
        policy_->stops(columns, 0, k, numbers, stop);
        std::vector<std::int64_t> going(stop.size());
        std::transform(stop.begin(), stop.end(), going.begin(), [](std::uint8_t one) { return one == 0; });
        result.go_on = send(going, question.slots.hidden.device()).to(at::kBool);
        return result;
    }

private:
    [[nodiscard]] bool needs(PolicySignal signal) const {
        const std::vector<PolicySignal>& wanted = spec_.kind->needs;
        return std::find(wanted.begin(), wanted.end(), signal) != wanted.end();
    }

    /// The signals of this step, fp32 [n] each, in the order of the kind's `needs`. \p move: for acceleration
    /// the update h^{k-1} - h^{k-2}, replaced by h^k - h^{k-1}; may be undefined.
    [[nodiscard]] std::vector<at::Tensor> measure(const HaltingQuestion& question, at::Tensor& move) const {
        HeadResult read;
        if (needs(PolicySignal::entropy) || needs(PolicySignal::margin) || needs(PolicySignal::argmax) ||
            needs(PolicySignal::kl)) {
            const at::ScalarType type = question.head.head.scalar_type();
            HeadRequest request;
            request.distribution = true;
            if (needs(PolicySignal::kl) && question.previous_readout.defined()) {
                request.previous = question.previous_readout.to(type);
            }
            read = read_out(question.readout.to(type), question.head, request);
        }
        const at::Tensor hidden = question.slots.hidden.to(at::kFloat);
        const at::Tensor nothing = at::zeros({hidden.size(0)}, hidden.options());
        const bool back = question.slots.step > 0 && question.previous_hidden.defined();
        const at::Tensor before = back ? question.previous_hidden.to(at::kFloat) : at::Tensor();
        std::vector<at::Tensor> signals;
        for (const PolicySignal signal : spec_.kind->needs) {
            switch (signal) {
            case PolicySignal::entropy:
                signals.push_back(read.entropy);
                break;
            case PolicySignal::margin:
                signals.push_back(read.margin);
                break;
            case PolicySignal::argmax:
                signals.push_back(read.argmax.to(at::kFloat));
                break;
            case PolicySignal::kl:
                signals.push_back(read.kl_previous_current.defined() ? read.kl_previous_current : nothing);
                break;
            case PolicySignal::cosine:
                signals.push_back(back ? (hidden * before).sum(1) / (hidden.norm(2, 1) * before.norm(2, 1))
                                       : nothing);
                break;
            case PolicySignal::latent:
                signals.push_back(back ? (hidden - before).norm(2, 1) / hidden.norm(2, 1) : nothing);
                break;
            case PolicySignal::acceleration: {
                const at::Tensor last = move;
                move = back ? hidden - before : at::Tensor();
                const bool twice = move.defined() && last.defined() && last.size(1) > 0;
                signals.push_back(twice ? acceleration(move, last) : nothing);
                break;
            }
            case PolicySignal::continue_value:
                signals.push_back((question.decision.compared.defined() ? question.decision.compared
                                                                        : question.decision.value)
                                      .to(at::kFloat));
                break;
            default: // NLL and signals by name: policy_halting() refuses them
                signals.push_back(nothing);
                break;
            }
        }
        return signals;
    }

    /// Sequence, position and length of each token, int64 [n].
    static std::vector<at::Tensor> places_of(const HaltingQuestion& question) {
        std::vector<at::Tensor> parts{question.places.sequence, question.places.position,
                                      question.places.length};
        if (question.slots.tokens.defined()) {
            for (at::Tensor& part : parts) {
                part = part.index_select(0, question.slots.tokens);
            }
        }
        return parts;
    }

    PolicySpec spec_;
    std::int64_t max_steps_;
    std::unique_ptr<Policy> policy_;
};

} // namespace

std::shared_ptr<const HaltingRule> policy_halting(const PolicySpec& spec, const ModelConfig& config) {
    const std::string method = to_string(config.ponder.method);
    if (!spec.kind->causal) {
        throw InputError(
            ErrorId::policy_unsuited,
            "Policy " + spec.kind->name +
                " needs the next token, which a run does not know yet; use ponderscope policy, which replays "
                "the policy and with --rerun runs the model for the replayed steps.");
    }
    if (!spec.kind->can_run()) {
        throw InputError(ErrorId::policy_unsuited,
                         "Policy " + spec.text() +
                             " reads a recorded signal that the engine does not compute, so the policy can "
                             "only be replayed (ponderscope policy); to run it, apply the rule in your own "
                             "code and record that run.");
    }
    PolicyContext context;
    // In a vanilla model the blocks are the steps (layer_steps.h).
    context.max_steps =
        config.ponder.method == MethodKind::vanilla ? config.layers - 1 : config.ponder.max_steps;
    if (context.max_steps == 0) {
        throw InputError(ErrorId::usage_unsuited,
                         "Policy " + spec.text() + ": this model (method " + method +
                             ") runs one step a token and cannot halt; leave --policy out.");
    }
    if (const OwnRule& own = method_info(config.ponder.method).own_rule; own.signal != nullptr) {
        context.own_threshold = std::isinf(config.ponder.threshold) ? std::numeric_limits<double>::quiet_NaN()
                                                                    : config.ponder.threshold;
        context.own_rule = own.stops;
    } else if (spec.kind->name == "learned") {
        throw InputError(ErrorId::policy_unsuited, "Policy " + spec.text() + ": the method " + method +
                                                       " has no gate or router; choose another policy.");
    }
    return std::make_shared<PolicyHalting>(spec, context);
}

} // namespace ponderscope
