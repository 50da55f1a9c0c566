// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/half.h"
#include "core/trace/reader.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace ponderscope {
namespace {

static_assert(std::endian::native == std::endian::little, "BLOBs are little-endian and read as they are");

/// Element \p i as a T, from bytes that need not be aligned.
template <class T>
T load(const SignalChunk& chunk, std::size_t i) {
    T value;
    std::memcpy(&value, chunk.data.data() + i * sizeof(T), sizeof(T));
    return value;
}

template <class Result, class T>
std::vector<Result> convert(const SignalChunk& chunk) {
    std::vector<Result> values(chunk.data.size() / sizeof(T));
    if (values.empty()) {
        return values; // an empty vector has no memory to copy to
    }
    if constexpr (std::is_same_v<Result, T>) {
        std::memcpy(values.data(), chunk.data.data(), values.size() * sizeof(T));
    } else {
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] =
                static_cast<Result>(load<T>(chunk, i)); // NOLINT(bugprone-signed-char-misuse): a number
        }
    }
    return values;
}

template <class Decode>
std::vector<float> convert_half(const SignalChunk& chunk, Decode decode) {
    std::vector<float> values(chunk.data.size() / 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = decode(load<std::uint16_t>(chunk, i));
    }
    return values;
}

template <class Result>
std::vector<Result> convert_integers(const SignalChunk& chunk) {
    switch (chunk.dtype) {
    case DType::boolean:
    case DType::u8:
        return convert<Result, std::uint8_t>(chunk);
    case DType::i8:
        return convert<Result, std::int8_t>(chunk);
    case DType::u16:
        return convert<Result, std::uint16_t>(chunk);
    case DType::i16:
        return convert<Result, std::int16_t>(chunk);
    case DType::u32:
        return convert<Result, std::uint32_t>(chunk);
    case DType::i32:
        return convert<Result, std::int32_t>(chunk);
    case DType::u64:
        return convert<Result, std::uint64_t>(chunk);
    case DType::i64:
        return convert<Result, std::int64_t>(chunk);
    default:
        throw InputError("expected whole numbers, found a signal of type " +
                         std::string(name_of(chunk.dtype)) + ".");
    }
}

} // namespace

std::vector<float> to_floats(const SignalChunk& chunk) {
    switch (chunk.dtype) {
    case DType::f16:
        return convert_half(chunk, float16_to_float);
    case DType::bf16:
        return convert_half(chunk, bfloat16_to_float);
    case DType::f32:
        return convert<float, float>(chunk);
    case DType::f64:
        return convert<float, double>(chunk);
    default:
        return convert_integers<float>(chunk);
    }
}

std::vector<double> to_doubles(const SignalChunk& chunk) {
    if (chunk.dtype == DType::f64) {
        return convert<double, double>(chunk);
    }
    if (chunk.dtype == DType::f16 || chunk.dtype == DType::bf16 || chunk.dtype == DType::f32) {
        const std::vector<float> values = to_floats(chunk);
        return {values.begin(), values.end()};
    }
    return convert_integers<double>(chunk);
}

std::vector<std::int64_t> to_integers(const SignalChunk& chunk) {
    return convert_integers<std::int64_t>(chunk);
}

} // namespace ponderscope
