// SPDX-License-Identifier: GPL-3.0-or-later
// The step with the lowest NLL, the first of equals: it knows the next token, so it is a bound and no policy.
#include "core/policy/kinds.h"

#include <algorithm>
#include <cmath>

namespace ponderscope::policies {
namespace {

class Oracle final : public Policy {
public:
    /// No step can be refused without having seen the later ones.
    void stops(const SignalColumns&, std::size_t, std::int64_t, std::span<const double>,
               std::span<std::uint8_t> stop) const override {
        std::fill(stop.begin(), stop.end(), std::uint8_t{0});
    }

    void choose(const SignalColumns& columns, std::size_t first, std::span<const TokenPlace>,
                std::span<const std::int32_t> ran, std::span<std::int32_t> steps) const override {
        const float* best = columns.column(PolicySignal::nll, 0).data() + first;
        std::vector<float> lowest(best, best + steps.size());
        // Without a target there is nothing to choose by: such a token runs on.
        for (std::size_t i = 0; i < steps.size(); ++i) {
            steps[i] = std::isnan(lowest[i]) ? ran[i] : 0;
        }
        for (std::int64_t k = 1; k <= columns.max_steps(); ++k) {
            const float* now = columns.column(PolicySignal::nll, k).data() + first;
            const auto here = static_cast<std::int32_t>(k);
            for (std::size_t i = 0; i < steps.size(); ++i) {
                const bool better = here <= ran[i] && now[i] < lowest[i];
                steps[i] = better ? here : steps[i];
                lowest[i] = better ? now[i] : lowest[i];
            }
        }
    }
};

} // namespace

PolicyKind oracle() {
    return {.name = "oracle",
            .rule =
                "the step with the lowest NLL: it knows the next token, so it is a bound and not a policy",
            .source = "",
            .parameters = {},
            .needs = {PolicySignal::nll},
            .causal = false,
            .make = [](const PolicySpec&, const PolicyContext&) -> std::unique_ptr<Policy> {
                return std::make_unique<Oracle>();
            }};
}

} // namespace ponderscope::policies
