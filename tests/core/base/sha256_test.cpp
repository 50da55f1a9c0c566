// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/sha256.h"

#include "core/base/splitmix.h"

#include <gtest/gtest.h>

namespace ponderscope {
namespace {

std::string digest(std::string_view text) {
    return Sha256().update(text).finish_hex();
}

// FIPS 180-4 examples, and the empty message.
TEST(Sha256, StandardVectors) {
    EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(
        digest(
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
            "mnopqrstnopqrstu"),
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    EXPECT_EQ(digest(std::string(1'000'000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Any way of cutting a message gives the digest of the whole; lengths around the padding's edges.
TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
    std::string message;
    for (std::uint64_t n = 0; n < 300; ++n) {
        message += static_cast<char>(splitmix64(3, n));
        const std::string whole = digest(message);
        Sha256 pieces;
        std::string_view rest = message;
        for (std::uint64_t cut = 0; !rest.empty(); ++cut) {
            const std::size_t taken = std::min<std::size_t>(rest.size(), splitmix64(n, cut) % 130);
            pieces.update(rest.substr(0, taken));
            rest.remove_prefix(taken);
        }
        ASSERT_EQ(pieces.finish_hex(), whole) << n;
    }
}

TEST(Sha256, HexOfAText) {
    EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

} // namespace
} // namespace ponderscope
