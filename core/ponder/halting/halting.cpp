// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/halting/halting.h"

#include "core/model/device.h"

#include <ATen/ATen.h>

#include <functional>
#include <limits>
#include <optional>
#include <utility>

namespace ponderscope {

namespace {

class Full final : public HaltingRule {
public:
    [[nodiscard]] std::string name() const override { return "full"; }
    [[nodiscard]] bool may_halt() const override { return false; }
    [[nodiscard]] HaltingAnswer answer(const HaltingQuestion&) const override { return {}; }
};

/// Some tokens run up to a given step; the others follow another rule.
class Given final : public HaltingRule {
public:
    /// The given last step of a token; no value: the other rule decides.
    using LastStep = std::function<std::optional<std::int64_t>(std::int64_t sequence, std::int64_t position)>;

    /// \p otherwise: the other rule; nullptr: the method's own rule.
    Given(std::string name, LastStep last, std::shared_ptr<const HaltingRule> otherwise)
        : name_(std::move(name)), last_(std::move(last)), otherwise_(std::move(otherwise)) {}

    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] bool reads_head() const override { return otherwise_ && otherwise_->reads_head(); }
    [[nodiscard]] bool looks_back() const override { return otherwise_ && otherwise_->looks_back(); }

    [[nodiscard]] HaltingAnswer answer(const HaltingQuestion& question) const override {
        HaltingAnswer result;
        if (otherwise_) {
            result = otherwise_->answer(question);
        } else {
            result.go_on = question.decision.go_on;
        }
        const auto asked = [&](const at::Tensor& all) {
            return question.slots.tokens.defined() ? all.index_select(0, question.slots.tokens) : all;
        };
        HostCopy host({asked(question.places.sequence), asked(question.places.position)});
        host.wait();
        std::vector<std::int64_t> given(static_cast<std::size_t>(question.slots.hidden.size(0)));
        std::vector<std::int64_t> going(given.size());
        for (std::size_t i = 0; i < given.size(); ++i) {
            const std::optional<std::int64_t> last = last_(host.integers(0)[i], host.integers(1)[i]);
            given[i] = last ? 1 : 0;
            going[i] = !last || question.slots.step < *last ? 1 : 0;
        }
        const at::Device device = question.slots.hidden.device();
        const at::Tensor on = send(going, device).to(at::kBool);
        result.go_on =
            result.go_on.defined() ? at::where(send(given, device).to(at::kBool), on, result.go_on) : on;
        return result;
    }

private:
    std::string name_;
    LastStep last_;
    std::shared_ptr<const HaltingRule> otherwise_;
};

} // namespace

at::Tensor acceleration(const at::Tensor& move, const at::Tensor& before) {
    const at::Tensor change = (move - before).norm(2, 1);
    return (change / move.norm(2, 1)).nan_to_num(0.0, std::numeric_limits<double>::infinity());
}

std::shared_ptr<const HaltingRule> full_halting() {
    return std::make_shared<Full>();
}

std::shared_ptr<const HaltingRule> prescribed_halting(std::string name,
                                                      std::vector<std::vector<std::int32_t>> steps) {
    const auto last = [steps = std::move(steps)](std::int64_t sequence,
                                                 std::int64_t position) -> std::optional<std::int64_t> {
        const auto s = static_cast<std::size_t>(sequence);
        const auto t = static_cast<std::size_t>(position);
        return s < steps.size() && t < steps[s].size() ? std::optional<std::int64_t>(steps[s][t])
                                                       : std::nullopt;
    };
    return std::make_shared<Given>(std::move(name), last, full_halting());
}

std::shared_ptr<const HaltingRule> forced_halting(std::vector<ForcedSteps> forced,
                                                  std::shared_ptr<const HaltingRule> otherwise) {
    std::string name = (otherwise ? otherwise->name() : "learned") + "; forced ";
    for (const ForcedSteps& one : forced) {
        name += (name.ends_with(' ') ? "" : ",") +
                (one.sequence != 0 ? std::to_string(one.sequence) + "/" : std::string()) +
                std::to_string(one.position) + ":" + std::to_string(one.steps);
    }
    const auto last = [forced = std::move(forced)](std::int64_t sequence,
                                                   std::int64_t position) -> std::optional<std::int64_t> {
        for (const ForcedSteps& one : forced) {
            if (one.sequence == sequence && one.position == position) {
                return one.steps;
            }
        }
        return std::nullopt;
    };
    return std::make_shared<Given>(std::move(name), last, std::move(otherwise));
}

} // namespace ponderscope
