// SPDX-License-Identifier: GPL-3.0-or-later
// The method's own rule with another tau: AdaPonderLM's gate (arXiv 2603.01914), PonderLM-3's tail mass
// (2603.02023), adaptive latent CoT's reach (2602.08220), which continue iff value >= tau; Ouro's cumulative
// exit probability (2510.25741), which stops there, and Think-at-Hard's gate (2511.08577).
#include "core/base/error.h"
#include "core/policy/kinds.h"

#include <cmath>
#include <limits>
#include <string>

namespace ponderscope::policies {

PolicyKind learned() {
    return {.name = "learned",
            .rule = "the model's own gate or router is below theta, or what it adds up over the steps has "
                    "reached it",
            .source = "arXiv 2603.01914, 2603.02023, 2602.08220, 2510.25741, 2511.08577",
            .parameters = {{.key = "theta",
                            .meaning = "tau of the gate or router; the model's own when absent",
                            .low = std::numeric_limits<double>::lowest(),
                            .absent = PolicyParameter::Absent::from_run}},
            .needs = {PolicySignal::continue_value},
            .make = [](const PolicySpec& spec, const PolicyContext& context) -> std::unique_ptr<Policy> {
                if (context.exit_step && !spec.has("theta")) {
                    return make_policy(PolicySpec::parse("fixed:n=" + std::to_string(*context.exit_step)),
                                       context);
                }
                const double theta = spec.has("theta") ? spec.number("theta") : context.own_threshold;
                if (std::isnan(theta)) {
                    throw InputError(
                        "Policy learned: this run's model has no threshold of its own; write one, as "
                        "in learned:theta=0.5.");
                }
                const auto rule = [theta](auto compare) -> std::unique_ptr<Policy> {
                    return std::make_unique<ThresholdRule<decltype(compare)>>(PolicySignal::continue_value,
                                                                              theta, 0, compare);
                };
                switch (context.own_rule) {
                case OwnRule::Stops::at_least:
                    return rule(std::greater_equal<>{});
                case OwnRule::Stops::at_most:
                    return rule(std::less_equal<>{});
                case OwnRule::Stops::below:
                    break;
                }
                return rule(std::less<>{});
            }};
}

} // namespace ponderscope::policies
