// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/first_version.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace ponderscope {
namespace {

/// The bytes of one value that says so; nothing where the type has none (numbers without a sign).
std::vector<std::byte> mark_of(DType dtype) {
    const auto bytes = [](auto value) {
        const auto array = std::bit_cast<std::array<std::byte, sizeof value>>(value);
        return std::vector<std::byte>(array.begin(), array.end());
    };
    switch (dtype) {
    case DType::f16:
        return bytes(std::uint16_t{0x7e00});
    case DType::bf16:
        return bytes(std::uint16_t{0x7fc0});
    case DType::f32:
        return bytes(std::numeric_limits<float>::quiet_NaN());
    case DType::f64:
        return bytes(std::numeric_limits<double>::quiet_NaN());
    case DType::i8:
        return bytes(static_cast<std::int8_t>(did_not_run));
    case DType::i16:
        return bytes(static_cast<std::int16_t>(did_not_run));
    case DType::i32:
        return bytes(did_not_run);
    case DType::i64:
        return bytes(std::int64_t{did_not_run});
    default:
        return {};
    }
}

} // namespace

void mark_what_did_not_run(SignalChunk& chunk, const std::vector<std::string>& axes,
                           std::span<const std::int32_t> steps) {
    const std::vector<std::byte> mark = mark_of(chunk.dtype);
    if (axes.size() < 2 || axes[1] != "step" || chunk.shape.size() != axes.size() || mark.empty()) {
        return;
    }
    const auto tokens = static_cast<std::size_t>(chunk.shape[0]);
    const auto columns = static_cast<std::size_t>(chunk.shape[1]);
    // What ends in zeros says it in its first value, the token itself.
    const auto stride = ends_in_zeros(axes) ? static_cast<std::size_t>(chunk.shape.back()) : std::size_t{1};
    const std::size_t each = tokens * columns == 0 ? 0 : chunk.data.size() / mark.size() / tokens / columns;
    for (std::size_t token = 0; token < std::min(tokens, steps.size()); ++token) {
        for (auto step = static_cast<std::size_t>(steps[token]) + 1; step < columns; ++step) {
            std::byte* const values = chunk.data.data() + (token * columns + step) * each * mark.size();
            for (std::size_t i = 0; i < each; i += stride) {
                std::byte* const value = values + i * mark.size();
                if (std::all_of(value, value + mark.size(), [](std::byte b) { return b == std::byte{0}; })) {
                    std::memcpy(value, mark.data(), mark.size());
                }
            }
        }
    }
}

} // namespace ponderscope
