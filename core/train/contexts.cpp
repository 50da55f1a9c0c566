// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/contexts.h"

#include "core/base/error.h"
#include "core/base/splitmix.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace ponderscope {

ContextSampler::ContextSampler(std::span<const std::int32_t> stream, std::int64_t context, std::uint64_t seed,
                               bool shifted)
    : stream_(stream), context_(context), seed_(seed), shifted_(shifted) {
    const auto size = static_cast<std::int64_t>(stream_.size());
    if (size < context + 1) {
        throw InputError("The training text has " + std::to_string(size) +
                         " tokens, fewer than a context of " + std::to_string(context) +
                         " and the token after it; give more text or a shorter context.");
    }
    // The same number for every phase, so that the counter alone says which epoch it is in.
    windows_ = std::max<std::int64_t>((size - (shifted ? context : 1)) / context, 1);
    if (windows_ > std::numeric_limits<std::uint32_t>::max()) {
        throw InputError("The training text has " + std::to_string(size) +
                         " tokens, more than can be cut into contexts of " + std::to_string(context) +
                         "; give a longer context.");
    }
    begin_epoch(0);
}

void ContextSampler::begin_epoch(std::uint64_t epoch) {
    epoch_ = epoch;
    const std::uint64_t draws = splitmix64(seed_, epoch);
    const auto size = static_cast<std::int64_t>(stream_.size());
    const std::int64_t phases = shifted_ ? std::min(context_, size - windows_ * context_) : 1;
    phase_ = static_cast<std::int64_t>(bounded(splitmix64(draws, 0), static_cast<std::uint64_t>(phases)));
    order_.resize(static_cast<std::size_t>(windows_));
    std::iota(order_.begin(), order_.end(), 0U);
    for (std::size_t i = order_.size(); i > 1; --i) {
        std::swap(order_[i - 1], order_[bounded(splitmix64(draws, i), i)]);
    }
}

std::span<const std::int32_t> ContextSampler::window(std::uint64_t n) {
    const auto windows = static_cast<std::uint64_t>(windows_);
    if (n / windows != epoch_) {
        begin_epoch(n / windows);
    }
    const std::int64_t begin = phase_ + static_cast<std::int64_t>(order_[n % windows]) * context_;
    return stream_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(context_ + 1));
}

std::vector<std::int64_t> held_out_windows(std::int64_t stream_tokens, std::int64_t context,
                                           std::int64_t most) {
    const std::int64_t there = stream_tokens > context ? (stream_tokens - 1) / context : 0;
    const std::int64_t wanted = most > 0 ? std::min(most, there) : there;
    std::vector<std::int64_t> begins(static_cast<std::size_t>(wanted));
    for (std::int64_t i = 0; i < wanted; ++i) {
        begins[static_cast<std::size_t>(i)] = (i * there / wanted) * context;
    }
    return begins;
}

} // namespace ponderscope
