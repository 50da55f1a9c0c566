// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ponderscope {
namespace {

using State = std::array<std::uint32_t, 8>;

alignas(16) constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* bytes) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    if constexpr (std::endian::native == std::endian::little) {
        word = __builtin_bswap32(word);
    }
    return word;
}

void compress_portable(State& state, const std::byte* data, std::size_t blocks) {
    for (; blocks > 0; --blocks, data += 64) {
        std::array<std::uint32_t, 64> w{};
        for (std::size_t i = 0; i < 16; ++i) {
            w[i] = big_endian(data + 4 * i);
        }
        for (std::size_t i = 16; i < 64; ++i) {
            const std::uint32_t x = w[i - 15];
            const std::uint32_t y = w[i - 2];
            const std::uint32_t s0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3U);
            const std::uint32_t s1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10U);
            w[i] = w[i - 16] + s0 + w[i - 7] + s1;
        }
        auto [a, b, c, d, e, f, g, h] = state;
        for (std::size_t i = 0; i < 64; ++i) {
            const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
            const std::uint32_t choice = g ^ (e & (f ^ g));
            const std::uint32_t t1 = h + s1 + choice + round_constants[i] + w[i];
            const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
            const std::uint32_t majority = (a & b) | (c & (a | b));
            h = g;
            g = f;
            f = e;
            e = d + t1;
            d = c;
            c = b;
            b = a;
            a = t1 + s0 + majority;
        }
        const State next{a, b, c, d, e, f, g, h};
        for (std::size_t i = 0; i < 8; ++i) {
            state[i] += next[i];
        }
    }
}

#if defined(__x86_64__)
/// Four rounds an instruction pair; the state travels as {a,b,e,f} and {c,d,g,h}, the order that SHA256RNDS2
/// wants.
__attribute__((target("sha,sse4.1,ssse3"))) void compress_sha_ni(State& state, const std::byte* data,
                                                                 std::size_t blocks) {
    const __m128i swap_bytes = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    const auto load = [](const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); };
    const __m128i dcba = load(state.data());
    const __m128i hgfe = load(state.data() + 4);
    const __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1);
    const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1B);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
    for (; blocks > 0; --blocks, data += 64) {
        const __m128i abef_before = abef;
        const __m128i cdgh_before = cdgh;
        __m128i w[4] = {};
        for (std::size_t i = 0; i < 16; ++i) {
            __m128i words;
            if (i < 4) {
                words = _mm_shuffle_epi8(load(data + 16 * i), swap_bytes);
            } else {
                // w[i] = w[i-16] + s0(w[i-15]) + w[i-7] + s1(w[i-2]), four words at once
                const __m128i partial = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
                const __m128i minus7 = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
                words = _mm_sha256msg2_epu32(_mm_add_epi32(partial, minus7), w[(i + 3) % 4]);
            }
            w[i % 4] = words;
            const __m128i input = _mm_add_epi32(words, load(round_constants.data() + 4 * i));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, input);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(input, 0x0E));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
    const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_sha_instructions() {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    __asm__("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(7), "c"(0));
    return (ebx & (1U << 29U)) != 0 && __builtin_cpu_supports("sse4.1") != 0;
}
#endif

void compress(State& state, const std::byte* data, std::size_t blocks,
              [[maybe_unused]] bool use_instructions) {
#if defined(__x86_64__)
    static const bool available = has_sha_instructions();
    if (available && use_instructions) {
        compress_sha_ni(state, data, blocks);
        return;
    }
#endif
    compress_portable(state, data, blocks);
}

} // namespace

Sha256::Sha256(bool use_processor_instructions)
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      use_processor_instructions_(use_processor_instructions) {}

Sha256& Sha256::update(std::span<const std::byte> bytes) {
    total_bytes_ += bytes.size();
    if (pending_bytes_ > 0) {
        const std::size_t taken = std::min(bytes.size(), pending_.size() - pending_bytes_);
        std::copy_n(bytes.begin(), taken, pending_.begin() + static_cast<std::ptrdiff_t>(pending_bytes_));
        pending_bytes_ += taken;
        bytes = bytes.subspan(taken);
        if (pending_bytes_ < pending_.size()) {
            return *this;
        }
        compress(state_, pending_.data(), 1, use_processor_instructions_);
        pending_bytes_ = 0;
    }
    const std::size_t blocks = bytes.size() / 64;
    compress(state_, bytes.data(), blocks, use_processor_instructions_);
    bytes = bytes.subspan(blocks * 64);
    std::copy(bytes.begin(), bytes.end(), pending_.begin());
    pending_bytes_ = bytes.size();
    return *this;
}

Sha256::Digest Sha256::finish() {
    const std::uint64_t bits = total_bytes_ * 8;
    std::array<std::byte, 128> tail{};
    std::copy_n(pending_.begin(), pending_bytes_, tail.begin());
    tail[pending_bytes_] = std::byte{0x80};
    const std::size_t blocks = pending_bytes_ < 56 ? 1 : 2;
    for (std::size_t i = 0; i < 8; ++i) {
        tail[blocks * 64 - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
    }
    compress(state_, tail.data(), blocks, use_processor_instructions_);
    Digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i) {
        digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    }
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
