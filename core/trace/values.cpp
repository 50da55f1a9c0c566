// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/half.h"
#include "core/trace/reader.h"

#include <bit>
#include <cstring>
#include <functional>

namespace ponderscope {
namespace {

static_assert(std::endian::native == std::endian::little, "BLOBs are little-endian and read as they are");

/// All elements, read as Stored and converted by \p decode. The bytes need not be aligned.
template <class Result, class Stored, class Decode = std::identity>
std::vector<Result> each_value(const SignalChunk& chunk, Decode decode = {}) {
    std::vector<Result> values(chunk.data.size() / sizeof(Stored));
    for (std::size_t i = 0; i < values.size(); ++i) {
        Stored stored;
        std::memcpy(&stored, chunk.data.data() + i * sizeof(Stored), sizeof(Stored));
        values[i] = static_cast<Result>(decode(stored)); // NOLINT(bugprone-signed-char-misuse): a number
    }
    return values;
}

template <class Result>
std::vector<Result> all_values(const SignalChunk& chunk) {
    switch (chunk.dtype) {
    case DType::boolean:
    case DType::u8:
        return each_value<Result, std::uint8_t>(chunk);
    case DType::i8:
        return each_value<Result, std::int8_t>(chunk);
    case DType::u16:
        return each_value<Result, std::uint16_t>(chunk);
    case DType::i16:
        return each_value<Result, std::int16_t>(chunk);
    case DType::u32:
        return each_value<Result, std::uint32_t>(chunk);
    case DType::i32:
        return each_value<Result, std::int32_t>(chunk);
    case DType::u64:
        return each_value<Result, std::uint64_t>(chunk);
    case DType::i64:
        return each_value<Result, std::int64_t>(chunk);
    case DType::f16:
        return each_value<Result, std::uint16_t>(chunk, float16_to_float);
    case DType::bf16:
        return each_value<Result, std::uint16_t>(chunk, bfloat16_to_float);
    case DType::f32:
        return each_value<Result, float>(chunk);
    case DType::f64:
        return each_value<Result, double>(chunk);
    }
    return {};
}

} // namespace

std::vector<float> to_floats(const SignalChunk& chunk) {
    return all_values<float>(chunk);
}

std::vector<double> to_doubles(const SignalChunk& chunk) {
    return all_values<double>(chunk);
}

std::vector<std::int64_t> to_integers(const SignalChunk& chunk) {
    if (is_real(chunk.dtype)) {
        throw InputError(ErrorId::input_invalid, "expected whole numbers, found a signal of type " +
                                                     std::string(name_of(chunk.dtype)) + ".");
    }
    return all_values<std::int64_t>(chunk);
}

} // namespace ponderscope
