// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/sha256.h"

#include "core/base/error.h"
#include "core/base/utf8.h"

#include <algorithm>
#include <openssl/evp.h>

namespace ponderscope {
namespace {

void require(bool done) {
    if (!done) {
        throw EnvironmentError(
            ErrorId::environment_program,
            "OpenSSL provides no SHA-256 on this machine; check its configuration (openssl.cnf).");
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
    const Digest digest = finish();
    return to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string sha256_hex(std::string_view text) {
    return Sha256().update(text).finish_hex();
}

std::string to_base64(std::string_view bytes) {
    std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0'); // OpenSSL appends a zero
    text.resize(static_cast<std::size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                                         reinterpret_cast<const unsigned char*>(bytes.data()),
                                                         static_cast<int>(bytes.size()))));
    return text;
}

std::string from_base64(std::string_view text) {
    std::string bytes(text.size(), '\0');
    const int size =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                        reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
    // OpenSSL counts the padding as bytes.
    const auto padding = std::min<std::ptrdiff_t>(2, std::count(text.begin(), text.end(), '='));
    bytes.resize(static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, size - padding)));
    return bytes;
}

} // namespace ponderscope
