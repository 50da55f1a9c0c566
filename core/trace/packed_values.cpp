// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/packed_values.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <zstd.h>

namespace ponderscope {
namespace {

/// [rows][columns] -> [columns][rows], by blocks, so that source and target stay in the cache.
void transpose(const std::byte* from, std::byte* to, std::size_t rows, std::size_t columns) {
    constexpr std::size_t block = 64;
    for (std::size_t row = 0; row < rows; row += block) {
        const std::size_t row_end = std::min(rows, row + block);
        for (std::size_t column = 0; column < columns; column += block) {
            const std::size_t column_end = std::min(columns, column + block);
            for (std::size_t c = column; c < column_end; ++c) {
                for (std::size_t r = row; r < row_end; ++r) {
                    to[c * rows + r] = from[r * columns + c];
                }
            }
        }
    }
}

/// Calls \p visit(column, Type{}) for each column of a packed token, in order. Type is its type in the array.
template <class Columns, class Visit>
void each_packed_column(Columns& tokens, const Visit& visit) {
    visit(tokens.id, std::int32_t{});
    visit(tokens.begin, std::uint32_t{});
    visit(tokens.end, std::uint32_t{});
    visit(tokens.nll, float{});
    visit(tokens.entropy, float{});
    visit(tokens.rank, std::int32_t{});
    visit(tokens.flops, std::int64_t{});
    visit(tokens.steps, std::uint16_t{});
}

} // namespace

std::optional<StoredType> stored_type_from_name(std::string_view name) {
    StoredType type;
    type.compressed = name.ends_with(compressed_suffix);
    if (type.compressed) {
        name.remove_suffix(compressed_suffix.size());
    }
    const std::optional<DType> dtype = dtype_from_name(name);
    if (!dtype) {
        return std::nullopt;
    }
    type.dtype = *dtype;
    return type;
}

std::vector<std::byte> compress_values(std::span<const std::byte> values, std::int64_t tokens) {
    const auto rows = static_cast<std::size_t>(tokens);
    if (values.size() < 64 || rows == 0) {
        return {};
    }
    std::vector<std::byte> planes(values.size());
    transpose(values.data(), planes.data(), rows, values.size() / rows);
    std::vector<std::byte> stored(ZSTD_compressBound(planes.size()));
    constexpr int fastest = 1;
    const std::size_t size =
        ZSTD_compress(stored.data(), stored.size(), planes.data(), planes.size(), fastest);
    if (ZSTD_isError(size) != 0U || size > values.size() - values.size() / 8) {
        return {};
    }
    stored.resize(size);
    return stored;
}

bool expand_values(std::span<const std::byte> stored, std::int64_t tokens, std::span<std::byte> values) {
    const auto rows = static_cast<std::size_t>(tokens);
    std::vector<std::byte> planes(values.size());
    const std::size_t size = ZSTD_decompress(planes.data(), planes.size(), stored.data(), stored.size());
    if (ZSTD_isError(size) != 0U || size != values.size() || rows == 0) {
        return false;
    }
    transpose(planes.data(), values.data(), values.size() / rows, rows);
    return true;
}

SignalInfo packed_token_info() {
    return {
        packed_token_signal,
        {"token", "byte"},
        "",
        "Tokens, packed",
        "id, text_begin, text_end, nll, entropy, rank, flops and steps of each token, one behind the other",
        DType::u8};
}

SignalChunk pack_tokens(const TokenColumns& tokens) {
    SignalChunk chunk;
    chunk.first = tokens.first;
    chunk.dtype = DType::u8;
    chunk.shape = {static_cast<std::int64_t>(tokens.size()), packed_token_bytes};
    chunk.data.resize(tokens.size() * static_cast<std::size_t>(packed_token_bytes));
    std::size_t offset = 0; // in a packed token
    each_packed_column(tokens, [&](const auto& column, auto value) {
        for (std::size_t i = 0; i < column.size(); ++i) { // empty for omitted spans
            value = static_cast<decltype(value)>(column[i]);
            std::memcpy(chunk.data.data() + i * packed_token_bytes + offset, &value, sizeof value);
        }
        offset += sizeof value;
    });
    return chunk;
}

std::optional<TokenColumns> unpack_tokens(const SignalChunk& chunk) {
    if (chunk.dtype != DType::u8 || chunk.shape.size() != 2 || chunk.shape[1] != packed_token_bytes) {
        return std::nullopt;
    }
    const auto n = static_cast<std::size_t>(chunk.shape[0]);
    TokenColumns tokens;
    tokens.first = chunk.first;
    tokens.max_probability.assign(n, std::numeric_limits<float>::quiet_NaN());
    std::size_t offset = 0; // in a packed token
    each_packed_column(tokens, [&](auto& column, auto value) {
        column.resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            std::memcpy(&value, chunk.data.data() + i * packed_token_bytes + offset, sizeof value);
            column[i] = value;
        }
        offset += sizeof value;
    });
    return tokens;
}

} // namespace ponderscope
