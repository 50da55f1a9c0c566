// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/safetensors.h"

#include "tests/core/checkpoint/support.h"

#include <array>
#include <cstring>
#include <limits>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using namespace testing;

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
    return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + '}';
}

class SafetensorsTest : public ::testing::Test {
protected:
    std::string opening(std::string_view content) {
        put_file(folder_ / "f", content);
        return sentence(folder_.path(), [&] { SafetensorsFile::open(folder_ / "f"); });
    }
    SafetensorsFile open(std::string_view content) {
        put_file(folder_ / "f", content);
        return SafetensorsFile::open(folder_ / "f");
    }
    TemporaryFolder folder_;
};

TEST_F(SafetensorsTest, ReadsWhatTheFormatAllows) {
    const std::string data = "abcdefgh12";
    const SafetensorsFile file = open(safetensors(
        "{" + tensor("b", "F32", "[2]", "[0,8]") + ",\"__metadata__\":{\"format\":\"pt\"}," +
            tensor("scalar", "I16", "[]", "[8,10]") + "," + tensor("a", "BF16", "[0,3]", "[8,8]") + "}   ",
        data));
    ASSERT_EQ(file.tensors().size(), 3U);
    EXPECT_EQ(file.tensors()[0].name, "b");
    EXPECT_EQ(file.tensors()[1].name, "a");
    EXPECT_EQ(file.tensors()[2].name, "scalar");
    EXPECT_EQ(file.find("b")->shape, std::vector<std::int64_t>{2});
    EXPECT_EQ(std::memcmp(file.find("b")->bytes.data(), "abcdefgh", 8), 0);
    EXPECT_TRUE(file.find("a")->bytes.empty());
    EXPECT_TRUE(file.find("scalar")->shape.empty());
    EXPECT_EQ(file.find("nothing"), nullptr);
    EXPECT_EQ(file.metadata().at("format"), "pt");
    EXPECT_EQ(opening(safetensors("{}")), "") << "no tensors at all";
    EXPECT_EQ(opening(safetensors("{\"__metadata__\":null}")), "") << "some writers do this";
}

TEST_F(SafetensorsTest, EveryTruncationIsRefused) {
    const std::string whole =
        safetensors("{" + tensor("a", "F32", "[2]", "[0,8]") + "," + tensor("b", "BF16", "[0,3]", "[8,8]") +
                        "," + tensor("c", "I64", "[1]", "[8,16]") + "}",
                    "abcdefgh12345678");
    EXPECT_EQ(opening(whole), "");
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_NE(opening(std::string_view(whole).substr(0, size)), "") << size;
    }
    EXPECT_NE(opening(whole + '\0'), "");
}

// Every rule of the format, broken once.
TEST_F(SafetensorsTest, TensorsOfOtherDtypesAreSetApart) {
    const SafetensorsFile file = open(safetensors("{" + tensor("a", "F8_E4M3", "[3]", "[0,3]") + "," +
                                                      tensor("b", "F32", "[1]", "[3,7]") + "," +
                                                      tensor("c", "F4", "[3]", "[7,9]") + "}",
                                                  "123456789"));
    ASSERT_EQ(file.tensors().size(), 1U);
    EXPECT_EQ(file.tensors()[0].name, "b");
    EXPECT_EQ(file.find("a"), nullptr);
    EXPECT_EQ(file.unreadable(), (std::map<std::string, std::string>{{"a", "F8_E4M3"}, {"c", "F4"}}));
}

TEST_F(SafetensorsTest, EveryBrokenRuleIsRefused) {
    const std::string good = tensor("w", "F32", "[2]", "[0,8]");
    const auto one = [](const char* shape, const char* offsets, const char* data = "12345678") {
        return safetensors("{" + tensor("w", "F32", shape, offsets) + "}", data);
    };
    const auto after_four_bytes = [](const char* offsets, const char* data) {
        return safetensors(
            "{" + tensor("v", "F32", "[1]", "[0,4]") + "," + tensor("w", "F32", "[1]", offsets) + "}", data);
    };
    const struct {
        std::string content;
        const char* part;
        const char* id = "checkpoint.damaged";
    } cases[]{{"", "", "checkpoint.kind"},
              {"abc", " 3 "},
              {std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10), " 18446744073709551615"},
              {std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10), " 100000001"},
              {std::string("\x40\0\0\0\0\0\0\0{}", 10), " 2 "},
              {std::string("\x80\x02\0\0\0\0\0\0{}", 10), " 2 "},
              {safetensors(""), ""},
              {safetensors(" {}"), "\" {}\""},
              {safetensors("[]"), "\"[]\""},
              {safetensors("{\"a\xFF\":1}"), "line 1, byte 4", "json.syntax"},
              {safetensors("{" + good + "," + good + "}", "12345678"), "\"w\"", "json.syntax"},
              {safetensors("{\"__metadata__\":{},\"__metadata__\":{}}"), "\"__metadata__\"", "json.syntax"},
              {safetensors("{" + std::string(100, '[')), "line 1, byte ", "json.syntax"},
              {safetensors("{\"a\":" + std::string(100, '[')), " 8 ", "json.syntax"},
              {safetensors("{\"__metadata__\":{\"n\":3}}"), "__metadata__.n", "json.value"},
              {safetensors("{\"__metadata__\":[]}"), "__metadata__", "json.value"},
              {safetensors("{\"w\":3}"), "\"w\"", "json.value"},
              {safetensors(R"({"w":{"shape":[],"data_offsets":[0,4]}})", "1234"), "dtype", "json.value"},
              {safetensors(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", "1234"), "shape", "json.value"},
              {safetensors(R"({"w":{"dtype":"F32","shape":[1]}})", "1234"), "data_offsets", "json.value"},
              {one("[-2]", "[0,8]"), "-2"},
              {one("[2.0]", "[0,8]"), "2.0"},
              {one("[true]", "[0,8]"), "true"},
              {one("[4294967296,4294967296]", "[0,8]"), "[4294967296,4294967296]"},
              {one("[4611686018427387904,4,0]", "[0,0]", ""), "[4611686018427387904,4,0]"},
              {one("[2]", "[0,4]", "1234"), "data_offsets [0,4]"},
              {one("[2]", "[8,0]"), "data_offsets [8,0]"},
              {one("[2]", "[0,8,9]"), "data_offsets"},
              {one("[2]", "[-8,0]"), "-8"},
              {one("[2]", "[0,18446744073709551615]"), "18446744073709551615"},
              {one("[1]", "[4,8]"), "byte 4"},
              {after_four_bytes("[2,6]", "12345678"), "byte 2"},
              {after_four_bytes("[0,4]", "1234"), "byte 0"},
              {safetensors("{" + good + "}", "1234567"), "7"},
              {safetensors("{" + good + "}", "123456789"), " 9 "},
              {safetensors("{}", "x"), " 1 "}};
    for (const auto& [content, part, id] : cases) {
        const std::string said = opening(content);
        EXPECT_TRUE(said.starts_with("f: ") && said.ends_with('[' + std::string(id) + ']')) << said;
        EXPECT_NE(said.find(part), std::string::npos) << said;
    }
}

TEST_F(SafetensorsTest, OtherFilesAreRecognisedByContent) {
    const std::pair<std::string, const char*> cases[]{
        {"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 2669283096\n", "git lfs pull"},
        {std::string("PK\x03\x04\0\0\0\0\0\0\0\0\0\0\0\0archive/data.pkl", 32), "safe_serialization=True"},
        {std::string("\x80\x02}q\0.", 6), "safe_serialization=True"},
        {std::string("\x80\x05\x95\0\0\0\0\0\0\0\0.", 12), "safe_serialization=True"},
        {std::string("\x80\x02\x8A\nl\xFC\x9C"
                     "F\xF9 j\xA8P\x19.",
                     16),
         "safe_serialization=True"},
        {std::string("PK\x03\x04\0\0\0\0\0\0\0\0\0\0\0\0weights.npy", 27), "zip"},
        {"GGUF\x03", "GGUF"},
        {"\n<!DOCTYPE HTML>\n<html>", ""},
        {"<html><body>404", ""},
        {std::string("SQLite format 3\0....", 20), "SQLite"},
        {"{\"error\": \"Repository not found\"}", "JSON"},
        {"\x89HDF\r\n\x1A\n", "HDF5"}};
    for (const auto& [content, kind] : cases) {
        const std::string said = opening(content);
        EXPECT_TRUE(said.starts_with("f: ") && said.ends_with(" [checkpoint.kind]")) << said;
        EXPECT_NE(said.find(kind), std::string::npos) << said;
    }
}

TEST_F(SafetensorsTest, AHeaderThatBeginsLikeAPickleIsStillAHeader) {
    std::string header = "{" + tensor("w", "F32", "[2]", "[0,8]") + "}";
    header.resize(0x280, ' ');
    EXPECT_EQ(opening(safetensors(header, "12345678")), "");
}

TEST_F(SafetensorsTest, WritesWhatItReads) {
    const std::array<float, 3> floats{1.5F, -0.0F, std::numeric_limits<float>::quiet_NaN()};
    const std::array<std::uint8_t, 3> bytes{7, 8, 9};
    const std::array<std::int64_t, 2> ids{-1, 5};
    const std::array<std::uint16_t, 2> halves{0x4040U, 0};
    const std::vector<TensorView> tensors{
        {"bytes", DType::u8, {3}, std::as_bytes(std::span(bytes))},
        {"floats \"quoted\" \xC3\xA9", DType::f32, {3, 1}, std::as_bytes(std::span(floats))},
        {"halves", DType::bf16, {2}, std::as_bytes(std::span(halves))},
        {"ids", DType::i64, {1, 2}, std::as_bytes(std::span(ids))},
        {"none", DType::f32, {0, 7}, {}},
    };
    write_safetensors(folder_ / "out", tensors, {{"format", "pt"}, {"line\n", "\xE2\x82\xAC"}});
    const SafetensorsFile file = SafetensorsFile::open(folder_ / "out");
    EXPECT_EQ(file.metadata(),
              (std::map<std::string, std::string>{{"format", "pt"}, {"line\n", "\xE2\x82\xAC"}}));
    ASSERT_EQ(file.tensors().size(), tensors.size());
    for (const TensorView& expected : tensors) {
        const TensorView* found = file.find(expected.name);
        ASSERT_NE(found, nullptr) << expected.name;
        EXPECT_EQ(found->dtype, expected.dtype);
        EXPECT_EQ(found->shape, expected.shape);
        ASSERT_EQ(found->bytes.size(), expected.bytes.size());
        EXPECT_TRUE(expected.bytes.empty() ||
                    std::memcmp(found->bytes.data(), expected.bytes.data(), expected.bytes.size()) == 0);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found->bytes.data()) % size_of(found->dtype), 0U)
            << "aligned: " << expected.name;
    }
    write_safetensors(folder_ / "again", tensors, {{"format", "pt"}, {"line\n", "\xE2\x82\xAC"}});
    EXPECT_EQ(read_file(folder_ / "out"), read_file(folder_ / "again")) << "the same bytes each time";
}

TEST_F(SafetensorsTest, OneDtypeKeepsItsOrder) {
    const std::array<float, 2> values{1, 2};
    const auto one = [&](const char* name, std::size_t i) {
        return TensorView{name, DType::f32, {1}, std::as_bytes(std::span(values).subspan(i, 1))};
    };
    write_safetensors(folder_ / "out", {one("z", 0), one("a", 1)});
    const SafetensorsFile file = SafetensorsFile::open(folder_ / "out");
    EXPECT_EQ(file.tensors()[0].name, "z");
    EXPECT_EQ(file.tensors()[1].name, "a");
}

TEST_F(SafetensorsTest, AViewThatContradictsItselfIsNotWritten) {
    const std::array<float, 2> values{1, 2};
    const auto bytes = std::as_bytes(std::span(values));
    EXPECT_THROW(write_safetensors(folder_ / "o", {{"w", DType::f32, {3}, bytes}}), std::invalid_argument);
    EXPECT_THROW(write_safetensors(folder_ / "o", {{"w", DType::f32, {-2}, bytes}}), std::invalid_argument);
    EXPECT_THROW(
        write_safetensors(folder_ / "o", {{"w", DType::f32, {2}, bytes}, {"w", DType::f32, {2}, bytes}}),
        std::invalid_argument);
    EXPECT_THROW(write_safetensors(folder_ / "o", {{"\xFF", DType::f32, {2}, bytes}}),
                 nlohmann::json::exception);
    EXPECT_FALSE(fs::exists(folder_ / "o"));
}

TEST_F(SafetensorsTest, FilesOfOtherWriters) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/checkpoints/safetensors_misc");
    int files = 0;
    for (const auto& entry :
         fs::directory_iterator(test_data() / "external" / "checkpoints" / "safetensors_misc")) {
        const SafetensorsFile file = SafetensorsFile::open(entry.path());
        EXPECT_FALSE(file.tensors().empty()) << entry.path();
        std::uint64_t bytes = 0;
        for (const TensorView& view : file.tensors()) {
            bytes += view.bytes.size();
        }
        EXPECT_LT(bytes, fs::file_size(entry.path()));
        ++files;
    }
    EXPECT_EQ(files, 9);
}

TEST_F(SafetensorsTest, EveryPickleOfTheCollectionIsRecognised) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/checkpoints/torch_pickle");
    int files = 0;
    for (const auto& entry :
         fs::directory_iterator(test_data() / "external" / "checkpoints" / "torch_pickle")) {
        // Under a name that promises weights, as a careless conversion leaves it.
        const std::string said = opening(read_file(entry.path()));
        EXPECT_EQ(error_id<Error>([&] { SafetensorsFile::open(folder_ / "f"); }), "checkpoint.kind")
            << entry.path() << ": " << said;
        ++files;
    }
    EXPECT_EQ(files, 26);
}

TEST_F(SafetensorsTest, TheAbuseAttempt) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/malformed/safetensors_abuse_attempt_1.safetensors");
    const fs::path path = test_data() / "external" / "malformed" / "safetensors_abuse_attempt_1.safetensors";
    EXPECT_EQ(error_id([&] { SafetensorsFile::open(path); }), "checkpoint.damaged");
}

} // namespace
} // namespace ponderscope
