// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/dtype.h"

#include <array>

namespace ponderscope {
namespace {

struct Entry {
    DType dtype;
    std::string_view name;
    std::size_t size;
};

constexpr std::array<Entry, 13> entries{{{DType::boolean, "BOOL", 1},
                                         {DType::u8, "U8", 1},
                                         {DType::i8, "I8", 1},
                                         {DType::u16, "U16", 2},
                                         {DType::i16, "I16", 2},
                                         {DType::u32, "U32", 4},
                                         {DType::i32, "I32", 4},
                                         {DType::u64, "U64", 8},
                                         {DType::i64, "I64", 8},
                                         {DType::f16, "F16", 2},
                                         {DType::bf16, "BF16", 2},
                                         {DType::f32, "F32", 4},
                                         {DType::f64, "F64", 8}}};

} // namespace

std::size_t size_of(DType dtype) {
    return entries[static_cast<std::size_t>(dtype)].size;
}

std::string_view name_of(DType dtype) {
    return entries[static_cast<std::size_t>(dtype)].name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
    for (const Entry& entry : entries) {
        if (entry.name == name) {
            return entry.dtype;
        }
    }
    return std::nullopt;
}

} // namespace ponderscope
