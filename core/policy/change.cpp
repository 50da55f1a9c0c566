// SPDX-License-Identifier: GPL-3.0-or-later
// kl, latent_difference and second_order: how much the last step changed the distribution and the state, and
// how much it differed from the step before.

#include "core/policy/kinds.h"

#include <algorithm>

namespace ponderscope::policies {

PolicyKind kl() {
    return {.name = "kl",
            .rule = "D_KL(p_k−1 ‖ p_k), from the step before to this one, is below theta nats",
            .source = "arXiv 2502.05171, with theta 5e-4",
            .parameters = {theta("nats", 5e-4)},
            .needs = {PolicySignal::kl},
            .first_step = 1,
            .make = below<PolicySignal::kl, 1>};
}

PolicyKind latent_difference() {
    return {.name = "latent_difference",
            .rule = "the state moved by less than theta of its length in the last step",
            .source = "arXiv 2502.05171, with theta 0.03",
            .parameters = {theta("of the state's length", 0.03)},
            .needs = {PolicySignal::latent},
            .first_step = 1,
            .make = below<PolicySignal::latent, 1>};
}

namespace {

/// Stops where the acceleration stayed below theta for so many steps in a row.
class SecondOrder final : public Policy {
public:
    SecondOrder(double theta, std::int64_t hits) : theta_(static_cast<float>(theta)), hits_(hits) {}

    void stops(const SignalColumns& columns, std::size_t first, std::int64_t k, std::span<const double>,
               std::span<std::uint8_t> stop) const override {
        constexpr std::int64_t first_step = 2; // an acceleration needs three states
        std::fill(stop.begin(), stop.end(), static_cast<std::uint8_t>(k >= first_step + hits_ - 1 ? 1 : 0));
        for (std::int64_t step = k; step > k - hits_ && step >= first_step; --step) {
            const float* now = columns.column(PolicySignal::acceleration, step).data() + first;
            for (std::size_t i = 0; i < stop.size(); ++i) {
                stop[i] = stop[i] != 0 && now[i] < theta_ ? 1 : 0; // NaN never stops
            }
        }
    }

private:
    float theta_;
    std::int64_t hits_;
};

} // namespace

PolicyKind second_order() {
    return {.name = "second_order",
            .rule = "the last step's move differed from the one before by less than theta of its length",
            .source = "arXiv 2509.23314, there with two hits in a row and without the division",
            .parameters = {theta("of the last move's length"),
                           {.key = "hits",
                            .meaning = "steps in a row",
                            .whole = true,
                            .low = 1,
                            .high = 16,
                            .absent = PolicyParameter::Absent::preset,
                            .value = std::uint64_t{1}}},
            .needs = {PolicySignal::acceleration},
            .first_step = 2, // an acceleration needs three states
            .make = [](const PolicySpec& spec, const PolicyContext&) -> std::unique_ptr<Policy> {
                return std::make_unique<SecondOrder>(spec.number("theta"),
                                                     static_cast<std::int64_t>(spec.whole("hits")));
            }};
}

} // namespace ponderscope::policies
