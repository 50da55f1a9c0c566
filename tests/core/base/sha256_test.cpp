// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace ponderscope {
namespace {

// FIPS 180-4 examples, and the empty message.
TEST(Sha256, StandardVectors) {
    EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Base64, VectorsOfRfc4648) {
    const std::pair<const char*, const char*> vectors[] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xfb\xff", "+/8="}};
    for (const auto& [bytes, text] : vectors) {
        EXPECT_EQ(to_base64(bytes), text);
        EXPECT_EQ(from_base64(text), bytes);
    }
    for (const char* wrong : {"Zg", "Z?==", "Zm9v="}) {
        EXPECT_EQ(from_base64(wrong), "") << wrong;
    }
}

} // namespace
} // namespace ponderscope
