// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/policy.h"

#include "core/trace/records.h"

#include <algorithm>
#include <array>

namespace ponderscope {

void Policy::per_token(std::span<const TokenPlace>, std::span<double>) const {}

void Policy::choose(const SignalColumns& columns, std::size_t first, std::span<const TokenPlace> places,
                    std::span<const std::int32_t> ran, std::span<std::int32_t> steps) const {
    // A block fits into the L1 cache. In descending steps, the earliest stop wins without a branch.
    constexpr std::size_t block = 1024;
    std::array<double, block> numbers;
    std::array<std::uint8_t, block> stop;
    const std::int64_t last = columns.max_steps();
    for (std::size_t begin = 0; begin < steps.size(); begin += block) {
        const std::size_t n = std::min(block, steps.size() - begin);
        std::int32_t* chosen = steps.data() + begin;
        per_token(places.subspan(begin, n), std::span(numbers).first(n));
        std::copy_n(ran.data() + begin, n, chosen);
        for (std::int64_t k = last - 1; k >= 0; --k) {
            stops(columns, first + begin, k, std::span(numbers).first(n), std::span(stop).first(n));
            const auto here = static_cast<std::int32_t>(k);
            for (std::size_t i = 0; i < n; ++i) {
                const std::int32_t earlier = std::min(here, chosen[i]);
                chosen[i] = stop[i] != 0 ? earlier : chosen[i];
            }
        }
    }
}

bool PolicyKind::reads_head() const {
    return causal && std::any_of(needs.begin(), needs.end(), [](PolicySignal signal) {
               return signal == PolicySignal::entropy || signal == PolicySignal::margin ||
                      signal == PolicySignal::argmax || signal == PolicySignal::kl ||
                      name_of(signal) == signal::max_probability ||
                      name_of(signal) == signal::kl_current_previous;
           });
}

bool PolicyKind::can_run() const {
    return causal && std::none_of(needs.begin(), needs.end(), is_named);
}

std::string PolicyKind::with_keys(const std::string& pairs) const {
    return pairs.empty() ? name : name + (is_signal_rule() ? "," : ":") + pairs;
}

const PolicyParameter* PolicyKind::find(std::string_view key) const {
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const PolicyParameter& parameter) { return parameter.key == key; });
    return found == parameters.end() ? nullptr : &*found;
}

std::unique_ptr<Policy> make_policy(const PolicySpec& spec, const PolicyContext& context) {
    return spec.kind->make(spec, context);
}

} // namespace ponderscope
