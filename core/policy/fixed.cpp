// SPDX-License-Identifier: GPL-3.0-or-later
// full and fixed: rules that look at nothing.
#include "core/base/error.h"
#include "core/policy/kinds.h"

#include <algorithm>

namespace ponderscope::policies {
namespace {

class Fixed final : public Policy {
public:
    explicit Fixed(std::int64_t n) : n_(n) {}
    void stops(const SignalColumns&, std::size_t, std::int64_t k, std::span<const double>,
               std::span<std::uint8_t> stop) const override {
        std::fill(stop.begin(), stop.end(), static_cast<std::uint8_t>(k >= n_ ? 1 : 0));
    }

private:
    std::int64_t n_;
};

} // namespace

PolicyKind full() {
    return {.name = "full",
            .rule = "nothing halts: every step runs",
            .source = "",
            .parameters = {},
            .needs = {},
            .make = [](const PolicySpec&, const PolicyContext& context) -> std::unique_ptr<Policy> {
                return std::make_unique<Fixed>(context.max_steps);
            }};
}

PolicyKind fixed() {
    return {.name = "fixed",
            .rule = "every token stops after step n",
            .source = "",
            .parameters = {{.key = "n", .meaning = "last step, from 0 to K", .whole = true, .high = 1e6}},
            .needs = {},
            .make = [](const PolicySpec& spec, const PolicyContext& context) -> std::unique_ptr<Policy> {
                const auto n = static_cast<std::int64_t>(spec.whole("n"));
                if (n > context.max_steps) {
                    throw InputError("Policy " + spec.text() + ": expected n from 0 to " +
                                     std::to_string(context.max_steps) +
                                     ", the last step of the run, found " + std::to_string(n) + ".");
                }
                return std::make_unique<Fixed>(n);
            }};
}

} // namespace ponderscope::policies
