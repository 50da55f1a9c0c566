// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/packed_values.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <zstd.h>

namespace ponderscope {
namespace {

/// [rows][columns] -> [columns][rows]; in blocks, so that both sides stay in the cache.
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

template <class Value>
std::byte* put(std::byte* at, Value value) {
    std::memcpy(at, &value, sizeof value); // the host is little-endian, as for every BLOB
    return at + sizeof value;
}

template <class Value>
Value take(const std::byte*& at) {
    Value value;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
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
    const bool spans = !tokens.begin.empty();
    std::byte* at = chunk.data.data();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        at = put(at, tokens.id[i]);
        at = put(at, static_cast<std::uint32_t>(spans ? tokens.begin[i] : 0));
        at = put(at, static_cast<std::uint32_t>(spans ? tokens.end[i] : 0));
        at = put(at, tokens.nll[i]);
        at = put(at, tokens.entropy[i]);
        at = put(at, tokens.rank[i]);
        at = put(at, tokens.flops[i]);
        at = put(at, static_cast<std::uint16_t>(tokens.steps[i]));
    }
    return chunk;
}

std::optional<TokenColumns> unpack_tokens(const SignalChunk& chunk) {
    if (chunk.dtype != DType::u8 || chunk.shape.size() != 2 || chunk.shape[1] != packed_token_bytes) {
        return std::nullopt;
    }
    const auto n = static_cast<std::size_t>(chunk.shape[0]);
    TokenColumns tokens;
    tokens.first = chunk.first;
    tokens.id.resize(n);
    tokens.begin.resize(n);
    tokens.end.resize(n);
    tokens.nll.resize(n);
    tokens.entropy.resize(n);
    tokens.max_probability.assign(n, std::numeric_limits<float>::quiet_NaN());
    tokens.rank.resize(n);
    tokens.steps.resize(n);
    tokens.flops.resize(n);
    const std::byte* at = chunk.data.data();
    for (std::size_t i = 0; i < n; ++i) {
        tokens.id[i] = take<std::int32_t>(at);
        tokens.begin[i] = take<std::uint32_t>(at);
        tokens.end[i] = take<std::uint32_t>(at);
        tokens.nll[i] = take<float>(at);
        tokens.entropy[i] = take<float>(at);
        tokens.rank[i] = take<std::int32_t>(at);
        tokens.flops[i] = take<std::int64_t>(at);
        tokens.steps[i] = take<std::uint16_t>(at);
    }
    return tokens;
}

} // namespace ponderscope
