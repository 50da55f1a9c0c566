// SPDX-License-Identifier: GPL-3.0-or-later
// What is recorded on request only takes: bytes of the trace, and memory.
#include "core/base/error.h"
#include "core/record/session.h"
#include "core/trace/writing/chunk_buffer.h"
#include "core/trace/windows.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// Bytes that tensors recorded on request may take in memory at once.
constexpr std::int64_t recording_room = std::int64_t{512} << 20;

} // namespace

RecordingPrice states_price(const Engine& engine, const std::vector<SequenceInput>& sequences,
                            const WindowShape& shape) {
    RecordingPrice price;
    const std::int64_t each = engine.token_bytes();
    if (each == 0) {
        return price;
    }
    std::int64_t longest = 0;
    for (const SequenceInput& sequence : sequences) {
        price.bytes += sequence.length() * each;
        price.tokens = std::max(price.tokens, sequence.length());
        longest = std::max(longest, std::min(sequence.length(), shape.context));
    }
    price.of_longest = price.tokens * each;
    // Beside what is kept, a score holds as much on its way to the trace.
    const std::int64_t fits = recording_room / engine.token_room();
    if (longest > fits) {
        throw InputError("--record: the states and read-outs of a window of " + std::to_string(longest) +
                         " tokens would take " + std::to_string((longest * engine.token_room()) >> 20) +
                         " MiB of memory, and " + std::to_string(recording_room >> 20) +
                         " are the most; choose fewer layers" +
                         (fits >= 2 ? ", or --context " + std::to_string(fits) + "." : "."));
    }
    price.windows_a_batch = std::max<std::int64_t>(fits / std::max<std::int64_t>(longest, 1), 1);
    return price;
}

RecordingPrice attention_price(const Engine& engine, const std::vector<SequenceInput>& sequences,
                               const WindowShape& shape) {
    const std::int64_t pair = engine.attention_pair_bytes();
    RecordingPrice price;
    if (pair == 0) {
        return price;
    }
    std::int64_t longest = 0;
    for (const SequenceInput& sequence : sequences) {
        const std::int64_t length = sequence.length();
        std::int64_t pairs = 0;
        for (const WindowSpan& span : plan_windows(length, shape.context, shape.stride)) {
            longest = std::max(longest, span.end - span.begin);
            // A token sees those of its window up to itself; a piece is as wide as its last one.
            for (std::int64_t t = span.report_begin; t < span.report_end; t += ChunkBuffer::trimmed_tokens) {
                const std::int64_t end = std::min(t + ChunkBuffer::trimmed_tokens, span.report_end);
                pairs += (end - t) * (end - span.begin);
            }
        }
        price.bytes += pairs * pair;
        if (pairs * pair > price.of_longest) {
            price.of_longest = pairs * pair;
            price.tokens = length;
        }
    }
    // A window's weights are there at once, each token as wide as the window; a batch shares the same room.
    constexpr std::int64_t room = recording_room;
    price.windows_a_batch = room / 4 / std::max<std::int64_t>(longest * longest * pair, 1);
    if (longest * longest > room / pair) {
        const auto fits = static_cast<std::int64_t>(std::sqrt(static_cast<double>(room / pair)));
        throw InputError("--attention: the weights of a window of " + std::to_string(longest) +
                         " tokens would take " + std::to_string((longest * longest * pair) >> 20) +
                         " MiB of memory, and " + std::to_string(room >> 20) +
                         " are the most; choose fewer layers or heads" +
                         (fits >= 2 ? ", or --context " + std::to_string(fits) + "." : "."));
    }
    price.windows_a_batch = std::max<std::int64_t>(price.windows_a_batch, 1);
    return price;
}

} // namespace ponderscope
