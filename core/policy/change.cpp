// SPDX-License-Identifier: GPL-3.0-or-later
// kl and latent_difference: how much the last step changed the distribution and the state.
#include "core/policy/kinds.h"

#include <algorithm>

namespace ponderscope::policies {

PolicyKind kl() {
    return {.name = "kl",
            .rule = "KL of the step before to this one is below theta nats",
            .source = "arXiv 2502.05171, with theta 5e-4",
            .parameters = {{.key = "theta",
                            .meaning = "nats",
                            .high = 1000,
                            .absent = PolicyParameter::Absent::preset,
                            .value = 5e-4}},
            .needs = {PolicySignal::kl},
            .make = [](const PolicySpec& spec, const PolicyContext&) -> std::unique_ptr<Policy> {
                return std::make_unique<ThresholdRule<Below>>(PolicySignal::kl, spec.number("theta"), 1,
                                                              Below{});
            }};
}

PolicyKind latent_difference() {
    return {.name = "latent_difference",
            .rule = "the state moved by less than theta of its length in the last step",
            .source = "arXiv 2502.05171, with theta 0.03",
            .parameters = {{.key = "theta",
                            .meaning = "of the state's length",
                            .high = 1000,
                            .absent = PolicyParameter::Absent::preset,
                            .value = 0.03}},
            .needs = {PolicySignal::latent},
            .make = [](const PolicySpec& spec, const PolicyContext&) -> std::unique_ptr<Policy> {
                return std::make_unique<ThresholdRule<Below>>(PolicySignal::latent, spec.number("theta"), 1,
                                                              Below{});
            }};
}

} // namespace ponderscope::policies
