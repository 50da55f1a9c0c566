// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// "[1024,4]".
std::string shape_to_json(std::span<const std::int64_t> shape);

/// Collects values of one signal of one sequence, and stores them in full chunks. flush() stores the
/// remaining values as a tail chunk. A longer chunk later replaces the tail in the same row. So a reader can
/// follow the recording, and the finished file has large chunks.
class ChunkBuffer {
public:
    /// Bytes of a full chunk. With 16 KiB pages, chunks below 64 KiB waste space. Larger chunks would slow
    /// down reads of one token's values, which may read a whole chunk.
    static constexpr std::size_t full_bytes = 256u << 10;
    /// One token's values may exceed a full chunk, but not this limit.
    static constexpr std::size_t max_token_bytes = 256u << 20;
    /// Tokens in a piece of a trimmed signal. A larger piece stores more zeros; a smaller piece costs more
    /// rows.
    static constexpr std::int64_t trimmed_tokens = 64;

    /// A chunk to store in row `row`, or in a new row if `row` is 0. Store returns the row.
    struct Piece {
        std::int64_t row;
        std::int64_t first_token;
        std::int64_t tokens;
        DType dtype;
        std::string shape;
        std::span<const std::byte> data;
    };
    using Store = std::function<std::int64_t(const Piece&)>;

    /// Adds the next tokens. Passes full chunks to \p store at once.
    void append(const SignalChunk& chunk, const Store& store);
    /// Passes tokens of a trimmed signal (records.h) to \p store in pieces of few tokens. The last axis of a
    /// piece is as short as its values allow. Buffers nothing.
    static void put_trimmed(const SignalChunk& chunk, const Store& store);
    /// Passes the remaining values to \p store as the tail chunk. append() can still extend it.
    void flush(const Store& store);

private:
    std::vector<std::byte> data_;
    std::vector<std::int64_t> shape_; ///< shape_[0] is replaced by the number of tokens of each chunk
    DType dtype_ = DType::f32;
    std::size_t token_bytes_ = 0;
    std::int64_t first_ = 0;  ///< token of the first entry in data_
    std::int64_t tokens_ = 0; ///< number of tokens in data_
    std::int64_t row_ = 0;    ///< row of the tail; 0 = not stored
    bool changed_ = false;    ///< data_ has grown since the tail was stored
};

} // namespace ponderscope
