// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/token_shards.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <numeric>

namespace ponderscope {
namespace {

const std::string ours(64, 'a');

std::vector<std::int32_t> counting(std::int32_t size, std::int32_t modulus) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(size));
    for (std::int32_t i = 0; i < size; ++i) {
        ids[static_cast<std::size_t>(i)] = i * 7919 % modulus;
    }
    return ids;
}

class Shards : public ::testing::TestWithParam<std::int32_t> {
protected:
    testing::TemporaryFolder folder;
    std::filesystem::path shards = folder / "shards";
    std::vector<std::int32_t> ids = counting(1000, GetParam());

    void SetUp() override {
        TokenShardWriter writer(shards, {ours, GetParam(), "<end>", {}}, 300);
        writer.add({ids.begin(), ids.begin() + 450});
        writer.add({ids.begin() + 450, ids.end()});
        EXPECT_EQ(writer.finish({{"a.txt", std::string(64, 'b'), 2, 5000, 1000}}), 4);
    }
    [[nodiscard]] std::string complaint(const std::string& tokenizer = ours) const {
        try {
            static_cast<void>(TokenShards::open(shards, tokenizer));
        } catch (const InputError& error) {
            return error.what();
        }
        return "nothing";
    }
};

TEST_P(Shards, AreTheStreamThatWasWritten) {
    const TokenShards opened = TokenShards::open(shards, ours);
    EXPECT_EQ(opened.info().sources.front().documents, 2);
    EXPECT_EQ(opened.info().document_end, "<end>");
    const TokenStream stream = opened.stream();
    ASSERT_EQ(stream.size(), 1000);
    for (const auto& [begin, length] : {std::pair{0, 1000}, {299, 2}, {300, 300}, {150, 700}, {999, 1}}) {
        std::vector<std::int32_t> read(static_cast<std::size_t>(length));
        stream.read(begin, read);
        EXPECT_TRUE(std::equal(read.begin(), read.end(), ids.begin() + begin)) << begin;
    }
    EXPECT_EQ(read_file(shards / "00000.safetensors").find("\"U16\"") != std::string::npos,
              GetParam() <= 65'536);
}

TEST_P(Shards, ThatAreDamagedOrForeignAreASentence) {
    EXPECT_NE(complaint(std::string(64, 'c')).find("shards made with the recipe's tokenizer"),
              std::string::npos);
    const auto first = shards / "00000.safetensors";
    const std::string good = read_file(first);
    std::string bad = good;
    bad.back() = static_cast<char>(bad.back() ^ 1);
    bad[bad.size() - 9] = static_cast<char>(bad[bad.size() - 9] ^ 1);
    write_file_atomically(first, bad);
    EXPECT_NE(complaint().find("00000.safetensors"), std::string::npos) << complaint();
    EXPECT_TRUE(complaint().find("the file is damaged") != std::string::npos ||
                complaint().find("ids below the vocabulary") != std::string::npos)
        << complaint();
    write_file_atomically(first, good.substr(0, good.size() - 2));
    EXPECT_NE(complaint().find("00000.safetensors"), std::string::npos) << complaint();
    // One shard in the place of another.
    write_file_atomically(first, read_file(shards / "00001.safetensors"));
    EXPECT_NE(complaint().find("the shard that shards.json names"), std::string::npos) << complaint();
    std::filesystem::remove(first);
    EXPECT_NE(complaint().find("00000.safetensors"), std::string::npos) << complaint();
    write_file_atomically(first, good);
    EXPECT_EQ(complaint(), "nothing");
    std::filesystem::remove(shards / "shards.json");
    EXPECT_NE(complaint().find("expected a folder of token shards, with a shards.json"), std::string::npos)
        << complaint();
}

TEST_P(Shards, AreWrittenWholeOrNotAtAll) {
    EXPECT_THROW(TokenShardWriter(shards, {ours, GetParam(), "", {}}, 300), InputError);
    {
        TokenShardWriter broken(folder / "broken", {ours, GetParam(), "", {}}, 300);
        broken.add(ids);
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "broken"));
}

TEST_P(Shards, HoldNoIdThatTheVocabularyHasNot) {
    TokenShardWriter writer(folder / "wild", {ours, 10, "", {}}, 300);
    writer.add({1, 2, 10});
    writer.finish({});
    try {
        static_cast<void>(TokenShards::open(folder / "wild", ours));
        FAIL();
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("ids below the vocabulary's 10, found 10"),
                  std::string::npos)
            << error.what();
    }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Shards, ::testing::Values(50'000, 128'256));

} // namespace
} // namespace ponderscope
