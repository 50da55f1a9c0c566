// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

/// One function a kind; policy.cpp lists them.
namespace ponderscope::policies {
PolicyKind full();
PolicyKind learned();
PolicyKind fixed();
PolicyKind uniform();
PolicyKind geometric();
PolicyKind oracle();
PolicyKind calm_margin();
PolicyKind calm_cosine();
PolicyKind entropy();
PolicyKind entropy_difference();
PolicyKind kl();
PolicyKind latent_difference();
PolicyKind second_order();
PolicyKind argmax_stable();

/// Stops where the signal at k compares with a constant threshold; `Compare` is called with both, and must
/// not hold of NaN. Rules that look at the step before start at k = \p first_step.
template <typename Compare>
class ThresholdRule final : public Policy {
public:
    ThresholdRule(PolicySignal signal, double threshold, std::int64_t first_step, Compare compare)
        : signal_(signal),
          threshold_(static_cast<float>(threshold)),
          first_step_(first_step),
          compare_(compare) {}

    void stops(const SignalColumns& columns, std::size_t first, std::int64_t k, std::span<const double>,
               std::span<std::uint8_t> stop) const override {
        if (k < first_step_) {
            std::fill(stop.begin(), stop.end(), std::uint8_t{0});
            return;
        }
        const float* now = columns.column(signal_, k).data() + first;
        for (std::size_t i = 0; i < stop.size(); ++i) {
            stop[i] = compare_(now[i], threshold_) ? 1 : 0;
        }
    }

private:
    PolicySignal signal_;
    float threshold_; ///< fp32, as the signals are and as the engine compares
    std::int64_t first_step_;
    Compare compare_;
};

/// signal < theta, from \p first_step on.
template <PolicySignal signal, std::int64_t first_step>
std::unique_ptr<Policy> below(const PolicySpec& spec, const PolicyContext&) {
    return std::make_unique<ThresholdRule<std::less<>>>(signal, spec.number("theta"), first_step,
                                                        std::less<>{});
}

/// A threshold from 0 to 1000; without a preset it must be given.
inline PolicyParameter theta(std::string meaning, std::optional<double> preset = std::nullopt) {
    using Absent = PolicyParameter::Absent;
    return {.key = "theta",
            .meaning = std::move(meaning),
            .high = 1000,
            .absent = preset ? Absent::preset : Absent::refused,
            .value = preset.value_or(0)};
}
} // namespace ponderscope::policies
