// SPDX-License-Identifier: GPL-3.0-or-later
// argmax_stable: the most likely token (of equals the lowest id) stayed the same over the last n transitions.
#include "core/policy/kinds.h"

#include <algorithm>

namespace ponderscope::policies {
namespace {

class ArgmaxStable final : public Policy {
public:
    explicit ArgmaxStable(std::int64_t n) : n_(n) {}
    void stops(const SignalColumns& columns, std::size_t first, std::int64_t k, std::span<const double>,
               std::span<std::uint8_t> stop) const override {
        std::fill(stop.begin(), stop.end(), static_cast<std::uint8_t>(k >= n_ ? 1 : 0));
        if (k < n_) {
            return;
        }
        const float* now = columns.column(PolicySignal::argmax, k).data() + first;
        for (std::int64_t back = 1; back <= n_; ++back) {
            const float* then = columns.column(PolicySignal::argmax, k - back).data() + first;
            for (std::size_t i = 0; i < stop.size(); ++i) {
                stop[i] = static_cast<std::uint8_t>(stop[i] & static_cast<std::uint8_t>(now[i] == then[i]));
            }
        }
    }

private:
    std::int64_t n_;
};

} // namespace

PolicyKind argmax_stable() {
    return {.name = "argmax_stable",
            .rule = "the most likely token did not change over the last n steps",
            .source = "arXiv 2502.05171, with n 5",
            .parameters = {{.key = "n",
                            .meaning = "transitions",
                            .whole = true,
                            .low = 1,
                            .high = 1e6,
                            .absent = PolicyParameter::Absent::preset,
                            .value = std::uint64_t{5}}},
            .needs = {PolicySignal::argmax},
            .first_step = 1,
            .make = [](const PolicySpec& spec, const PolicyContext&) -> std::unique_ptr<Policy> {
                return std::make_unique<ArgmaxStable>(static_cast<std::int64_t>(spec.whole("n")));
            }};
}

} // namespace ponderscope::policies
