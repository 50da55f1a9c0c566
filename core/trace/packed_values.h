// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ponderscope {

/// The format of a chunk's values in its BLOB, as stored in chunk.dtype.
struct StoredType {
    DType dtype = DType::f32;
    bool compressed = false; ///< the name ends in "+zstd"
};
inline constexpr std::string_view compressed_suffix = "+zstd";
std::optional<StoredType> stored_type_from_name(std::string_view name);

/// Compresses the values of \p tokens tokens. Transposes [token][byte] to [byte][token], so that similar
/// bytes are neighbours, then applies zstd at its fastest level. Returns nothing if this saves less than 1/8.
std::vector<std::byte> compress_values(std::span<const std::byte> values, std::int64_t tokens);
/// Decompresses. False: \p stored is not a zstd frame of exactly values.size() bytes.
bool expand_values(std::span<const std::byte> stored, std::int64_t tokens, std::span<std::byte> values);

/// The signal that holds the tokens of a run of record_level "scalars". Such a run has no rows in token_row.
/// Axes: token and byte; dtype U8. Each token has `packed_token_bytes` bytes: id i32, text_begin u32,
/// text_end u32, nll f32, entropy f32, rank i32, flops i64, steps u16, little-endian. max_probability is not
/// stored.
inline constexpr const char* packed_token_signal = "token";
inline constexpr std::int64_t packed_token_bytes = 34;
SignalInfo packed_token_info();
/// Texts must be shorter than 4 GiB, steps below 65536 (TraceWriter checks both).
SignalChunk pack_tokens(const TokenColumns& tokens);
/// No value: the chunk has another type or shape.
std::optional<TokenColumns> unpack_tokens(const SignalChunk& chunk);

} // namespace ponderscope
