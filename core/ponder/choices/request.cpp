// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/choices/request.h"

#include <algorithm>

namespace ponderscope {

void append_rows(SignalChunk& all, const SignalChunk& chunk, std::size_t first, std::size_t count) {
    if (all.shape.empty()) {
        all.dtype = chunk.dtype;
        all.shape = chunk.shape;
        all.shape.front() = 0;
    }
    const std::size_t width =
        chunk.data.size() / static_cast<std::size_t>(std::max<std::int64_t>(chunk.shape.front(), 1));
    const auto begin = chunk.data.begin() + static_cast<std::ptrdiff_t>(first * width);
    all.data.insert(all.data.end(), begin, begin + static_cast<std::ptrdiff_t>(count * width));
    all.shape.front() += static_cast<std::int64_t>(count);
}

void WindowResult::append(const WindowResult& other, std::size_t first, std::size_t count) {
    const auto put = [&](auto& all, const auto& more) {
        const auto begin = more.begin() + static_cast<std::ptrdiff_t>(first);
        all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    if (tokens.id.empty()) {
        tokens.first = other.tokens.first + static_cast<std::int64_t>(first);
    }
    put(tokens.id, other.tokens.id);
    put(tokens.nll, other.tokens.nll);
    put(tokens.entropy, other.tokens.entropy);
    put(tokens.max_probability, other.tokens.max_probability);
    put(tokens.rank, other.tokens.rank);
    put(tokens.steps, other.tokens.steps);
    put(tokens.flops, other.tokens.flops);
    for (std::size_t s = 0; s < other.signals.size(); ++s) {
        if (signals.size() == s) {
            signals.emplace_back(other.signals[s].first, SignalChunk());
            signals.back().second.first = tokens.first;
        }
        append_rows(signals[s].second, other.signals[s].second, first, count);
    }
}

std::string to_string(const StatePlace& place) {
    return "sequence " + std::to_string(place.sequence) + ", token " + std::to_string(place.token) +
           ", step " + std::to_string(place.step) +
           (place.layer == StatePlace::end_of_step ? "" : ", layer " + std::to_string(place.layer));
}

} // namespace ponderscope
