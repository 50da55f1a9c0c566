// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/writing/chunk_buffer.h"

#include <algorithm>

namespace ponderscope {

std::string shape_to_json(std::span<const std::int64_t> shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
    }
    return text + "]";
}

void ChunkBuffer::append(const SignalChunk& chunk, const Store& store) {
    const std::int64_t tokens = chunk.shape.front();
    if (tokens == 0) {
        return;
    }
    if (shape_.empty()) {
        first_ = chunk.first;
        shape_ = chunk.shape;
        dtype_ = chunk.dtype;
        token_bytes_ = chunk.data.size() / static_cast<std::size_t>(tokens);
    }
    const auto full = static_cast<std::int64_t>(
        std::max<std::size_t>(1, full_bytes / std::max<std::size_t>(1, token_bytes_)));
    std::span<const std::byte> rest(chunk.data);
    std::int64_t remaining = tokens;
    while (remaining > 0) {
        const std::int64_t now = std::min(remaining, full - tokens_);
        const std::span<const std::byte> piece = rest.first(static_cast<std::size_t>(now) * token_bytes_);
        data_.insert(data_.end(), piece.begin(), piece.end());
        tokens_ += now;
        changed_ = true;
        if (tokens_ == full) {
            flush(store);
            first_ += tokens_;
            tokens_ = row_ = 0;
            data_.clear();
        }
        rest = rest.subspan(piece.size());
        remaining -= now;
    }
}

void ChunkBuffer::put_trimmed(const SignalChunk& chunk, const Store& store) {
    const std::size_t item = size_of(chunk.dtype);
    const auto length = static_cast<std::size_t>(chunk.shape.back());
    const std::int64_t tokens = chunk.shape.front();
    if (tokens == 0) {
        return;
    }
    const std::size_t rows_a_token = chunk.data.size() / static_cast<std::size_t>(tokens) / (length * item);
    std::vector<std::byte> data;
    std::vector<std::int64_t> shape = chunk.shape;
    for (std::int64_t first = 0; first < tokens; first += trimmed_tokens) {
        const std::int64_t count = std::min(trimmed_tokens, tokens - first);
        const std::span<const std::byte> piece =
            std::span(chunk.data)
                .subspan(static_cast<std::size_t>(first) * rows_a_token * length * item,
                         static_cast<std::size_t>(count) * rows_a_token * length * item);
        const std::size_t rows = static_cast<std::size_t>(count) * rows_a_token;
        std::size_t kept = 1; // values of each row, at least one, so that no chunk is empty
        for (std::size_t row = 0; row < rows; ++row) {
            const std::span<const std::byte> values = piece.subspan(row * length * item, length * item);
            std::size_t used = values.size();
            while (used > kept * item && values[used - 1] == std::byte{0}) {
                --used;
            }
            kept = std::max(kept, (used + item - 1) / item);
        }
        data.clear();
        for (std::size_t row = 0; row < rows; ++row) {
            const std::span<const std::byte> values = piece.subspan(row * length * item, kept * item);
            data.insert(data.end(), values.begin(), values.end());
        }
        shape.front() = count;
        shape.back() = static_cast<std::int64_t>(kept);
        store({0, chunk.first + first, count, chunk.dtype, shape_to_json(shape), data});
    }
}

void ChunkBuffer::flush(const Store& store) {
    if (!changed_) {
        return;
    }
    shape_.front() = tokens_;
    row_ = store({row_, first_, tokens_, dtype_, shape_to_json(shape_), data_});
    changed_ = false;
}

} // namespace ponderscope
