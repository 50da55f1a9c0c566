// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ponderscope {

/// Element types of safetensors files and of trace BLOBs. All little-endian.
enum class DType : std::uint8_t { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64 };

/// Size of one element in bytes.
std::size_t size_of(DType dtype);
constexpr bool is_real(DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}
/// The name that safetensors uses: "F32", "BF16", "I64", "BOOL".
std::string_view name_of(DType dtype);
/// The type with this safetensors name; nothing if the name is unknown.
std::optional<DType> dtype_from_name(std::string_view name);

} // namespace ponderscope
