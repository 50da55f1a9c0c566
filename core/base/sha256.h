// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace ponderscope {

/// SHA-256 (FIPS 180-4) of bytes that arrive in parts, by OpenSSL. EnvironmentError if OpenSSL lacks SHA-256.
class Sha256 {
public:
    using Digest = std::array<std::uint8_t, 32>;

    Sha256();
    Sha256& update(std::span<const std::byte> bytes);
    Sha256& update(std::string_view text) {
        return update(std::as_bytes(std::span(text.data(), text.size())));
    }
    /// The digest of all bytes so far. The object cannot be used again.
    [[nodiscard]] Digest finish();
    [[nodiscard]] std::string finish_hex(); ///< lower case, 64 characters

private:
    struct Free {
        void operator()(evp_md_ctx_st* context) const;
    };
    std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::string_view text);

/// Base64 (RFC 4648), by OpenSSL.
std::string to_base64(std::string_view bytes);
std::string from_base64(std::string_view text); ///< empty if \p text is not Base64

} // namespace ponderscope
