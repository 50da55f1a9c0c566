// SPDX-License-Identifier: GPL-3.0-or-later
// entropy and entropy_difference: the read-out's entropy in nats, and its change by the last step.
#include "core/policy/kinds.h"

#include <algorithm>
#include <cmath>

namespace ponderscope::policies {
namespace {

double change(float now, float before) {
    return std::abs(static_cast<double>(now) - static_cast<double>(before));
}

double compared_change(const SignalColumns& columns, std::size_t token, const TokenPlace&, std::int64_t k) {
    return change(columns.column(PolicySignal::entropy, k)[token],
                  columns.column(PolicySignal::entropy, k - 1)[token]);
}

class EntropyDifference final : public Policy {
public:
    explicit EntropyDifference(double threshold) : threshold_(threshold) {}
    void stops(const SignalColumns& columns, std::size_t first, std::int64_t k, std::span<const double>,
               std::span<std::uint8_t> stop) const override {
        if (k < 1) {
            std::fill(stop.begin(), stop.end(), std::uint8_t{0});
            return;
        }
        const float* now = columns.column(PolicySignal::entropy, k).data() + first;
        const float* before = columns.column(PolicySignal::entropy, k - 1).data() + first;
        for (std::size_t i = 0; i < stop.size(); ++i) {
            stop[i] = change(now[i], before[i]) < threshold_ ? 1 : 0;
        }
    }

private:
    double threshold_;
};

} // namespace

PolicyKind entropy() {
    return {.name = "entropy",
            .rule = "the entropy of the read-out is below theta nats",
            .source = "",
            .parameters = {theta("nats; there is no published default")},
            .needs = {PolicySignal::entropy},
            .make = below<PolicySignal::entropy, 0>};
}

PolicyKind entropy_difference() {
    return {.name = "entropy_difference",
            .rule = "the entropy changed by less than theta nats in the last step",
            .source = "arXiv 2502.05171, with theta 1e-3",
            .parameters = {theta("nats", 1e-3)},
            .needs = {PolicySignal::entropy},
            .first_step = 1,
            .compared = compared_change,
            .make = [](const PolicySpec& spec, const PolicyContext&) -> std::unique_ptr<Policy> {
                return std::make_unique<EntropyDifference>(spec.number("theta"));
            }};
}

} // namespace ponderscope::policies
