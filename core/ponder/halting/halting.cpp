// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/halting/halting.h"

#include "core/model/device.h"

#include <ATen/ATen.h>

#include <utility>

namespace ponderscope {

namespace {

class Full final : public HaltingRule {
public:
    [[nodiscard]] std::string name() const override { return "full"; }
    [[nodiscard]] bool may_halt() const override { return false; }
    [[nodiscard]] HaltingAnswer answer(const HaltingQuestion&) const override { return {}; }
};

class Forced final : public HaltingRule {
public:
    Forced(std::vector<ForcedSteps> forced, std::shared_ptr<const HaltingRule> otherwise)
        : forced_(std::move(forced)), otherwise_(std::move(otherwise)) {}

    [[nodiscard]] std::string name() const override {
        std::string text = (otherwise_ ? otherwise_->name() : "learned") + "; forced ";
        for (std::size_t i = 0; i < forced_.size(); ++i) {
            const ForcedSteps& one = forced_[i];
            text += i == 0 ? "" : ",";
            if (one.sequence != 0) {
                text += std::to_string(one.sequence) + "/";
            }
            text += std::to_string(one.position) + ":" + std::to_string(one.steps);
        }
        return text;
    }

    [[nodiscard]] bool reads_head() const override { return otherwise_ && otherwise_->reads_head(); }
    [[nodiscard]] bool looks_back() const override { return otherwise_ && otherwise_->looks_back(); }

    [[nodiscard]] HaltingAnswer answer(const HaltingQuestion& question) const override {
        HaltingAnswer result;
        if (otherwise_) {
            result = otherwise_->answer(question);
        } else {
            result.go_on = question.decision.go_on;
        }
        const auto pick = [&](const at::Tensor& all) {
            return question.slots.tokens.defined() ? all.index_select(0, question.slots.tokens) : all;
        };
        const at::Tensor sequence = pick(question.places.sequence);
        const at::Tensor position = pick(question.places.position);
        at::Tensor go_on = result.go_on.defined() ? result.go_on : at::ones_like(position, at::kBool);
        for (const ForcedSteps& one : forced_) {
            const at::Tensor meant = sequence.eq(one.sequence).logical_and(position.eq(one.position));
            go_on = question.slots.step < one.steps ? go_on.logical_or(meant)
                                                    : go_on.logical_and(meant.logical_not());
        }
        result.go_on = go_on;
        return result;
    }

private:
    std::vector<ForcedSteps> forced_;
    std::shared_ptr<const HaltingRule> otherwise_;
};

class Prescribed final : public HaltingRule {
public:
    Prescribed(std::string name, std::vector<std::vector<std::int32_t>> steps)
        : name_(std::move(name)), steps_(std::move(steps)) {}

    [[nodiscard]] std::string name() const override { return name_; }

    [[nodiscard]] HaltingAnswer answer(const HaltingQuestion& question) const override {
        const auto asked = [&](const at::Tensor& all) {
            return question.slots.tokens.defined() ? all.index_select(0, question.slots.tokens) : all;
        };
        HostCopy host({asked(question.places.sequence), asked(question.places.position)});
        host.wait();
        std::vector<std::int64_t> going(static_cast<std::size_t>(question.slots.hidden.size(0)));
        for (std::size_t i = 0; i < going.size(); ++i) {
            const auto s = static_cast<std::size_t>(host.integers(0)[i]);
            const auto t = static_cast<std::size_t>(host.integers(1)[i]);
            const bool given = s < steps_.size() && t < steps_[s].size();
            going[i] = !given || question.slots.step < steps_[s][t];
        }
        HaltingAnswer result;
        result.go_on = send(going, question.slots.hidden.device()).to(at::kBool);
        return result;
    }

private:
    std::string name_;
    std::vector<std::vector<std::int32_t>> steps_;
};

} // namespace

std::shared_ptr<const HaltingRule> prescribed_halting(std::string name,
                                                      std::vector<std::vector<std::int32_t>> steps) {
    return std::make_shared<Prescribed>(std::move(name), std::move(steps));
}

std::shared_ptr<const HaltingRule> full_halting() {
    return std::make_shared<Full>();
}

std::shared_ptr<const HaltingRule> forced_halting(std::vector<ForcedSteps> forced,
                                                  std::shared_ptr<const HaltingRule> otherwise) {
    return std::make_shared<Forced>(std::move(forced), std::move(otherwise));
}

} // namespace ponderscope
