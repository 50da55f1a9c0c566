// SPDX-License-Identifier: GPL-3.0-or-later
// calm_margin and calm_cosine: CALM (arXiv 2207.07061), softmax response and state saturation, with its
// decaying threshold min(1, max(0, lambda (0.9 + 0.1 e^{-4t/N}))).
#include "core/policy/kinds.h"

#include <algorithm>
#include <cmath>

namespace ponderscope::policies {
namespace {

/// The threshold at this place, of a lambda of one.
double decay(const TokenPlace& place) {
    return 0.9 + 0.1 * std::exp(-4.0 * place.position / place.length);
}

template <PolicySignal signal>
double compared(const SignalColumns& columns, std::size_t token, const TokenPlace& place, std::int64_t k) {
    return static_cast<double>(columns.column(signal, k)[token]) / decay(place);
}

class Calm final : public Policy {
public:
    Calm(PolicySignal signal, std::int64_t first_step, double lambda)
        : signal_(signal), first_step_(first_step), lambda_(lambda) {}

    void per_token(std::span<const TokenPlace> places, std::span<double> numbers) const override {
        for (std::size_t i = 0; i < places.size(); ++i) {
            numbers[i] = std::clamp(lambda_ * decay(places[i]), 0.0, 1.0);
        }
    }

    void stops(const SignalColumns& columns, std::size_t first, std::int64_t k,
               std::span<const double> numbers, std::span<std::uint8_t> stop) const override {
        if (k < first_step_) {
            std::fill(stop.begin(), stop.end(), std::uint8_t{0});
            return;
        }
        const float* now = columns.column(signal_, k).data() + first;
        for (std::size_t i = 0; i < stop.size(); ++i) {
            stop[i] = static_cast<double>(now[i]) >= numbers[i] ? 1 : 0;
        }
    }

private:
    PolicySignal signal_;
    std::int64_t first_step_;
    double lambda_;
};

std::vector<PolicyParameter> calm_parameters() {
    return {{.key = "lambda", .meaning = "threshold, before it decays along the sequence", .high = 2}};
}

} // namespace

PolicyKind calm_margin() {
    return {.name = "calm_margin",
            .rule = "the two largest probabilities differ by lambda or more (decaying)",
            .source = "arXiv 2207.07061, softmax response",
            .parameters = calm_parameters(),
            .needs = {PolicySignal::margin},
            .compared = compared<PolicySignal::margin>,
            .make = [](const PolicySpec& spec, const PolicyContext&) -> std::unique_ptr<Policy> {
                return std::make_unique<Calm>(PolicySignal::margin, 0, spec.number("lambda"));
            }};
}

PolicyKind calm_cosine() {
    return {.name = "calm_cosine",
            .rule = "cosine of the state and that of the step before is lambda or more (decaying)",
            .source = "arXiv 2207.07061, hidden-state saturation",
            .parameters = calm_parameters(),
            .needs = {PolicySignal::cosine},
            .first_step = 1,
            .compared = compared<PolicySignal::cosine>,
            .make = [](const PolicySpec& spec, const PolicyContext&) -> std::unique_ptr<Policy> {
                return std::make_unique<Calm>(PolicySignal::cosine, 1, spec.number("lambda"));
            }};
}

} // namespace ponderscope::policies
