// SPDX-License-Identifier: GPL-3.0-or-later
// Folders of weights: what is found in them, and what is refused.
#include "core/checkpoint/checkpoint.h"
#include "tests/core/checkpoint/support.h"

#include <cstring>

#include <sys/stat.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using namespace testing;

/// A file with one-element F32 tensors of these names.
std::string shard(const std::vector<std::string>& names) {
    std::string header = "{";
    std::string data;
    for (const std::string& name : names) {
        header += (data.empty() ? "\"" : ",\"") + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[)" +
                  std::to_string(data.size()) + "," + std::to_string(data.size() + 4) + "]}";
        data += "\x01\x02\x03\x04";
    }
    return safetensors(header + "}", data);
}

class WeightsTest : public ::testing::Test {
protected:
    void put(const std::string& name, std::string_view content) { put_file(folder_ / name, content); }
    void put_index(const std::string& map) {
        put("model.safetensors.index.json", R"({"metadata":{"total_size":8},"weight_map":)" + map + "}");
    }
    std::string opening() {
        return sentence(folder_.path(), [&] { Weights::open(folder_.path()); });
    }
    /// Whether the folder is refused as no safetensors file, by the name of \p file.
    bool is_wrong_kind(const std::string& file) {
        return opening().starts_with(file + ": ") && opening().ends_with("[checkpoint.kind]");
    }
    TemporaryFolder folder_;
};

TEST_F(WeightsTest, NamesLoseWhatWrappersPutThere) {
    const auto names = [&](const std::vector<std::string>& written) {
        put("model.safetensors", shard(written));
        return Weights::open(folder_.path()).names();
    };
    using Names = std::vector<std::string>;
    EXPECT_EQ(names({"_orig_mod.model.a", "_orig_mod.b"}), (Names{"b", "model.a"}));
    EXPECT_EQ(names({"module.a", "module.b"}), (Names{"a", "b"}));
    EXPECT_EQ(names({"module._orig_mod.module.a", "b"}), (Names{"a", "b"}));
    EXPECT_EQ(names({"model.layers.0._orig_mod.w", "_forward_module._fsdp_wrapped_module.x"}),
              (Names{"model.layers.0.w", "x"}));
    EXPECT_EQ(names({"a", "module.a"}), (Names{"a", "module.a"})) << "two names must not become one";
    EXPECT_EQ(names({"my_orig_mod.a", "x.module.a"}), (Names{"my_orig_mod.a", "x.module.a"}));
    put("model.safetensors", shard({"module._orig_mod.a"}));
    const Weights weights = Weights::open(folder_.path());
    EXPECT_EQ(weights.removed_name_parts(), (Names{"_orig_mod.", "module."}));
    ASSERT_NE(weights.find("a"), nullptr);
    EXPECT_EQ(weights.find("a")->name, "module._orig_mod.a") << "as the file has it, for messages";
}

TEST_F(WeightsTest, TensorsOfOtherDtypesAreSetApart) {
    put("one.safetensors",
        safetensors(R"({"a":{"dtype":"F8_E5M2","shape":[2],"data_offsets":[0,2]}})", "12"));
    put("two.safetensors", shard({"b"}));
    put_index(R"({"a":"one.safetensors","b":"two.safetensors"})");
    const Weights weights = Weights::open(folder_.path());
    EXPECT_EQ(weights.names(), std::vector<std::string>{"b"});
    EXPECT_EQ(weights.unreadable(), (std::map<std::string, std::string>{{"a", "F8_E5M2"}}));
}

TEST_F(WeightsTest, OneFile) {
    put("model.safetensors", shard({"b", "a"}));
    const Weights weights = Weights::open(folder_.path());
    EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(weights.total_bytes(), 8U);
    EXPECT_EQ(weights.files(), std::vector<fs::path>{folder_ / "model.safetensors"});
    ASSERT_NE(weights.find("a"), nullptr);
    EXPECT_EQ(weights.find("c"), nullptr);
    EXPECT_EQ(std::memcmp(weights.find("a")->bytes.data(), "\x01\x02\x03\x04", 4), 0);
}

TEST_F(WeightsTest, ViewsSurviveMoving) {
    put("1.safetensors", shard({"a"}));
    put("2.safetensors", shard({"b"}));
    put_index(R"({"a":"1.safetensors","b":"2.safetensors"})");
    Weights weights = Weights::open(folder_.path());
    const TensorView* a = weights.find("a");
    const Weights moved = std::move(weights);
    EXPECT_EQ(moved.find("a"), a);
    EXPECT_EQ(std::memcmp(a->bytes.data(), "\x01\x02\x03\x04", 4), 0);
    EXPECT_EQ(moved.files().size(), 2U);
}

TEST_F(WeightsTest, LinksOfTheOwnerAreFollowed) {
    // The Hugging Face cache keeps files elsewhere and links to them.
    fs::create_directory(folder_ / "blobs");
    fs::create_directory(folder_ / "snapshot");
    put("blobs/abc", shard({"a"}));
    fs::create_symlink("../blobs/abc", folder_.path() / "snapshot" / "model.safetensors");
    EXPECT_NE(Weights::open(folder_ / "snapshot").find("a"), nullptr);
}

TEST_F(WeightsTest, ShardsInASubfolder) {
    fs::create_directory(folder_ / "parts");
    put("parts/1.safetensors", shard({"a"}));
    put_index(R"({"a":"parts/1.safetensors"})");
    EXPECT_NE(Weights::open(folder_.path()).find("a"), nullptr);
}

TEST_F(WeightsTest, TheSingleFileComesBeforeAnIndex) {
    put("model.safetensors", shard({"a"}));
    put_index(R"({"b":"none.safetensors"})");
    EXPECT_NE(Weights::open(folder_.path()).find("a"), nullptr);
}

TEST_F(WeightsTest, TensorsOutsideTheIndexAreThereToo) {
    put("1.safetensors", shard({"a", "extra"}));
    put_index(R"({"a":"1.safetensors"})");
    EXPECT_NE(Weights::open(folder_.path()).find("extra"), nullptr);
}

TEST_F(WeightsTest, FaultyIndicesAreRefused) {
    put("1.safetensors", shard({"a"}));
    put("2.safetensors", shard({"b", "a"}));
    fs::create_directory(folder_ / "sub");
    fs::create_symlink("loop", folder_ / "loop");
    const struct {
        const char* map;
        const char* place;
        const char* id;
    } cases[]{{R"({"a":"3.safetensors"})", "\"3.safetensors\"", "checkpoint.files"},
              {R"({"a":"../1.safetensors"})", "\"../1.safetensors\"", "checkpoint.damaged"},
              {R"({"a":"sub/../../x"})", "\"sub/../../x\"", "checkpoint.damaged"},
              {R"({"a":"/etc/passwd"})", "\"/etc/passwd\"", "checkpoint.damaged"},
              {R"({"a":""})", "\"\"", "checkpoint.damaged"},
              {R"({"a":"1.safetensors\u0000"})", "\"1.safetensors\\x00\"", "checkpoint.damaged"},
              {R"({"a":"sub"})", "sub: ", "file.kind"},
              {R"({"a":"loop"})", "loop: ", "file.kind"},
              {R"({"a":3})", "\"weight_map.a\"", "json.value"},
              {R"({"z":"1.safetensors"})", "\"z\"", "checkpoint.damaged"},
              {R"({"b":"1.safetensors","a":"2.safetensors"})", "2.safetensors: ", "checkpoint.damaged"},
              {R"([])", "\"weight_map\"", "json.value"},
              {R"({})", "\"weight_map\"", "checkpoint.damaged"},
              {R"({"a":"1.safetensors","a":"1.safetensors"})", "\"a\"", "json.syntax"}};
    const auto expect_error = [&](const std::string& place, const std::string& id) {
        const std::string said = opening();
        EXPECT_NE(said.find(place), std::string::npos) << said;
        EXPECT_TRUE(said.ends_with('[' + id + ']')) << said;
    };
    for (const auto& [map, place, id] : cases) {
        put_index(map);
        expect_error(place, id);
    }
    put("model.safetensors.index.json", "");
    expect_error("index.json: ", "json.syntax");
    put("model.safetensors.index.json", std::string(100'000, '['));
    expect_error("64", "json.syntax");
    put("model.safetensors.index.json", R"({"weights":{}})");
    expect_error("\"weight_map\"", "json.value");
}

TEST_F(WeightsTest, ATensorThatLiesInAnotherShardThanTheIndexSays) {
    put("1.safetensors", shard({"a"}));
    put("2.safetensors", shard({"b"}));
    put_index(R"({"a":"2.safetensors","b":"1.safetensors"})");
    const std::string said = opening();
    EXPECT_TRUE(said.starts_with("model.safetensors.index.json: ")) << said;
    EXPECT_NE(said.find("\"a\""), std::string::npos) << said;
    EXPECT_NE(said.find(" 2.safetensors"), std::string::npos) << said;
    EXPECT_TRUE(said.ends_with("[checkpoint.damaged]")) << said;
}

TEST_F(WeightsTest, FoldersWithoutWeightsSayWhatTheyHold) {
    const auto expect_found = [&](const std::string& part) {
        EXPECT_TRUE(opening().starts_with(": ") && opening().ends_with("[checkpoint.files]")) << opening();
        EXPECT_NE(opening().find(part), std::string::npos) << opening();
    };
    expect_found("");
    put("config.json", "{}");
    expect_found("model.safetensors.index.json");
    put("x.safetensors", shard({"a"}));
    expect_found("x.safetensors");
    for (const char* const name : {"a", "b", "c", "d"}) {
        put(std::string(name) + ".safetensors", shard({name}));
    }
    expect_found("a.safetensors, b.safetensors, c.safetensors, d.safetensors");
    EXPECT_EQ(error_id([&] { Weights::open(folder_ / "none"); }), "file.missing");
    EXPECT_EQ(error_id([&] { Weights::open(folder_ / "config.json"); }), "file.kind");
}

TEST_F(WeightsTest, AFolderWithOnlyAPickleSaysHowToConvertIt) {
    put("config.json", "{}");
    for (const char* const name : {"pytorch_model.bin", "model.pt", "model.pth", "last.ckpt", "weights.PT"}) {
        const std::string content = std::string("PK\x03\x04\0\0\0\0\0\0archive/data.pkl", 26);
        put(name, content);
        const std::string said = opening();
        EXPECT_TRUE(is_wrong_kind(name)) << said;
        EXPECT_NE(said.find("python3 -c"), std::string::npos);
        fs::remove(folder_ / name);
    }
    put("pytorch_model.bin", "(dp0\n.");
    EXPECT_TRUE(is_wrong_kind("pytorch_model.bin")) << opening();
    put("training_args.bin", "nothing known");
    fs::remove(folder_ / "pytorch_model.bin");
    EXPECT_TRUE(opening().ends_with("[checkpoint.files]")) << opening();
    put("model.gguf", "GGUF\x03");
    EXPECT_TRUE(is_wrong_kind("model.gguf")) << opening();
}

TEST_F(WeightsTest, APickleUnderTheNameOfWeights) {
    put("model.safetensors", std::string("\x80\x02}q\0.", 6));
    EXPECT_TRUE(is_wrong_kind("model.safetensors")) << opening();
}

TEST_F(WeightsTest, APipeDoesNotBlock) {
    ASSERT_EQ(::mkfifo((folder_ / "model.safetensors").c_str(), 0600), 0);
    EXPECT_TRUE(opening().starts_with("model.safetensors: ") && opening().ends_with("[file.kind]"))
        << opening();
}

TEST(MalformedFolders, EachGetsItsSentence) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/malformed");
    const fs::path root = test_data() / "external" / "malformed";
    const struct {
        const char* folder;
        const char* place;
        const char* part;
    } cases[] = {
        {"index_without_shards", "model.safetensors.index.json: ", "\"model-00001-of-00005.safetensors\""},
        {"lfs_pointer", "model.safetensors: ", "[checkpoint.kind]"},
        {"mlxd_shard_glob", ": ", "a.safetensors, b.safetensors, c.safetensors"},
        {"mlxd_shard_single", "model.safetensors: ", "[checkpoint.kind]"},
        {"mlxd_shard_index", "model-00001-of-00002.safetensors: ", "[checkpoint.kind]"}};
    for (const auto& [folder, place, part] : cases) {
        const std::string said = sentence(root / folder, [&] { Weights::open(root / folder); });
        EXPECT_TRUE(said.starts_with(place)) << said;
        EXPECT_NE(said.find(part), std::string::npos) << said;
    }
}

} // namespace
} // namespace ponderscope
