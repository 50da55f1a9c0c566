// SPDX-License-Identifier: GPL-3.0-or-later
// A halting policy and a sweep as text.
#include "core/policy/policy.h"
#include "core/policy/policy_spec.h"
#include "tests/fuzz/harness/harness.h"

#include <cmath>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    const std::string_view text = fuzz::text_of(data, size);
    fuzz::ask([&] {
        const PolicySpec spec = PolicySpec::parse(text);
        fuzz::require(PolicySpec::parse(spec.text()) == spec, spec.text());
        fuzz::ask(
            [&] { (void)make_policy(spec, {.max_steps = 3, .own_threshold = 0.5, .learned_rate = 1.5}); });
        fuzz::ask([&] { (void)spec.with("theta", 0.25); });
    });
    fuzz::ask([&] {
        const Sweep sweep = Sweep::parse(text);
        fuzz::require(!sweep.key.empty() && !sweep.values.empty() && sweep.values.size() <= 100'000, "sweep");
        for (const double value : sweep.values) {
            fuzz::require(std::isfinite(value), "a value that is no number");
        }
    });
    return 0;
}
