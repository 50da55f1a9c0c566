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

/// Collects one signal of one sequence until a chunk is worth a BLOB. Fewer values are written as the tail
/// chunk, and the same row is written again, longer, the next time: so a reader can follow, and the file
/// still ends up with large chunks.
class ChunkBuffer {
public:
    /// Bytes of a full chunk. At 16 KiB pages less than 64 KiB wastes space, and reading one token's values
    /// reads a chunk at worst.
    static constexpr std::size_t full_bytes = 256u << 10;
    /// One token's values can be larger than that; more than this is refused.
    static constexpr std::size_t max_token_bytes = 256u << 20;
    /// Tokens of a piece that is stored without zeros: few enough that a triangle loses little, enough that
    /// a piece is worth a row of the table.
    static constexpr std::int64_t trimmed_tokens = 64;

    /// A chunk to be stored: a new row when row is 0. Returns its row.
    struct Piece {
        std::int64_t row;
        std::int64_t first_token;
        std::int64_t tokens;
        DType dtype;
        std::string shape;
        std::span<const std::byte> data;
    };
    using Store = std::function<std::int64_t(const Piece&)>;

    /// The next tokens; full chunks go to \p store at once.
    void append(const SignalChunk& chunk, const Store& store);
    /// Tokens of a signal that ends in zeros (records.h): goes to \p store in pieces of few tokens, each as
    /// short in the last axis as its values allow. Nothing is kept.
    static void put_trimmed(const SignalChunk& chunk, const Store& store);
    /// The rest goes to \p store as the tail, and stays here to grow.
    void flush(const Store& store);

private:
    std::vector<std::byte> data_;
    std::vector<std::int64_t> shape_; ///< shape_[0] is overwritten with the tokens of each chunk
    DType dtype_ = DType::f32;
    std::size_t token_bytes_ = 0;
    std::int64_t first_ = 0;  ///< token of the first entry in data_
    std::int64_t tokens_ = 0; ///< in data_
    std::int64_t row_ = 0;    ///< the existing row of the tail; 0 = nowhere
    bool changed_ = false;    ///< since the tail was written
};

} // namespace ponderscope
