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

/// The form of a chunk's values in its BLOB, named by chunk.dtype.
struct StoredType {
    DType dtype = DType::f32;
    bool compressed = false; ///< "+zstd" behind the type's name
};
inline constexpr std::string_view compressed_suffix = "+zstd";
std::optional<StoredType> stored_type_from_name(std::string_view name);

/// Values of \p tokens tokens for the file: transposed from [token][byte] to [byte][token], so that similar
/// bytes are neighbours, and compressed by zstd at its fastest level. Empty if that does not take at least
/// an eighth less.
std::vector<std::byte> compress_values(std::span<const std::byte> values, std::int64_t tokens);
/// The way back. False: no zstd frame that holds exactly \p values.size() bytes.
bool expand_values(std::span<const std::byte> stored, std::int64_t tokens, std::span<std::byte> values);


/// The signal that holds the tokens of a run recorded as scalars, which has no rows in token_row: axes token
/// and byte, U8, of each token `packed_token_bytes`: id i32, text_begin u32, text_end u32, nll f32, entropy
/// f32, rank i32, flops i64, steps u16, little-endian. max_probability is not kept.
inline constexpr const char* packed_token_signal = "token";
inline constexpr std::int64_t packed_token_bytes = 34;
SignalInfo packed_token_info();
/// Texts must be shorter than 4 GiB, steps below 65536 (TraceWriter checks both).
SignalChunk pack_tokens(const TokenColumns& tokens);
/// No value: the chunk has another type or shape.
std::optional<TokenColumns> unpack_tokens(const SignalChunk& chunk);

} // namespace ponderscope
