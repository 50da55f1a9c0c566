// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/sha256.h"

#include "core/base/error.h"

#include <openssl/evp.h>

namespace ponderscope {
namespace {

void require(bool done) {
    if (!done) {
        throw EnvironmentError(
            "OpenSSL gives no SHA-256 on this machine; check its configuration (openssl.cnf).");
    }
}

} // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
    EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
    require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

Sha256& Sha256::update(std::span<const std::byte> bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
    return *this;
}

Sha256::Digest Sha256::finish() {
    Digest digest{};
    require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
    return digest;
}

std::string Sha256::finish_hex() {
    return to_hex(finish());
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const std::uint8_t byte : bytes) {
        text += digits[byte >> 4U];
        text += digits[byte & 0xFU];
    }
    return text;
}

std::string sha256_hex(std::string_view text) {
    return Sha256().update(text).finish_hex();
}

} // namespace ponderscope
