// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ponderscope {

/// SHA-256 (FIPS 180-4) of bytes that arrive in pieces. Uses the processor's SHA instructions where it has
/// them.
class Sha256 {
public:
    using Digest = std::array<std::uint8_t, 32>;

    /// \p use_processor_instructions false keeps to portable code: the same digest, more slowly.
    explicit Sha256(bool use_processor_instructions = true);
    Sha256& update(std::span<const std::byte> bytes);
    Sha256& update(std::string_view text) {
        return update(std::as_bytes(std::span(text.data(), text.size())));
    }
    /// The digest of everything so far. The object is used up: make a new one for the next message.
    [[nodiscard]] Digest finish();
    [[nodiscard]] std::string finish_hex(); ///< lower case, 64 characters

private:
    std::array<std::uint32_t, 8> state_;
    std::array<std::byte, 64> pending_{};
    std::size_t pending_bytes_ = 0;
    std::uint64_t total_bytes_ = 0;
    bool use_processor_instructions_;
};

/// Lower-case hexadecimal.
std::string to_hex(std::span<const std::uint8_t> bytes);

std::string sha256_hex(std::string_view text);

} // namespace ponderscope
