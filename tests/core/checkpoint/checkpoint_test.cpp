// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include "core/base/files.h"
#include "core/base/sha256.h"
#include "tests/core/checkpoint/support.h"

#include <chrono>
#include <cstdlib>
#include <optional>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using namespace testing;

const std::string tiny_config =
    R"({"model_type":"llama","hidden_size":4,"num_hidden_layers":1,"num_attention_heads":1,"vocab_size":3,"intermediate_size":4})";
const std::string tiny_weights =
    safetensors(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234");

class CheckpointTest : public ::testing::Test {
protected:
    void put(const std::string& name, std::string_view content) { put_file(folder_ / name, content); }
    void put_model() {
        put("config.json", tiny_config);
        put("model.safetensors", tiny_weights);
    }
    std::string opening(const fs::path& path) {
        return sentence(folder_.path(), [&] { Checkpoint::open(path); });
    }
    TemporaryFolder folder_;
};

/// The digest's definition, written out once more.
std::string by_hand(const std::vector<std::pair<std::string, std::string>>& files) {
    std::string message;
    for (const auto& [name, content] : files) {
        message += name + '\0';
        for (std::size_t i = 0; i < 8; ++i) {
            message += static_cast<char>(static_cast<std::uint64_t>(content.size()) >> (8 * i));
        }
        message += content;
    }
    return sha256_hex(message);
}

TEST_F(CheckpointTest, GenerationConfigNamesTheEndTokens) {
    put_model();
    put("config.json", tiny_config.substr(0, tiny_config.size() - 1) + R"(,"eos_token_id":1})");
    EXPECT_EQ(Checkpoint::open(folder_.path()).config.eos_token_ids, (std::vector<std::int64_t>{1}));
    put("generation_config.json", R"({"eos_token_id":[2,0],"temperature":0.6,"do_sample":true})");
    const Checkpoint opened = Checkpoint::open(folder_.path());
    EXPECT_EQ(opened.config.eos_token_ids, (std::vector<std::int64_t>{2, 0}));
    EXPECT_TRUE(opened.config.notices.empty());
    put("generation_config.json", R"({"repetition_penalty":1.2,"suppress_tokens":[]})");
    const ModelConfig config = Checkpoint::open(folder_.path()).config;
    EXPECT_EQ(config.eos_token_ids, (std::vector<std::int64_t>{1})) << "where the file names none";
    ASSERT_EQ(ids_of(config.notices), NoticeIds{NoticeId::config_generation});
    EXPECT_NE(config.notices[0].text.find("repetition_penalty"), std::string::npos);
    put("generation_config.json", R"({"eos_token_id":"</s>"})");
    EXPECT_NE(opening(folder_.path()).find("generation_config.json"), std::string::npos);
}

/// Sets a variable of the environment as long as it lives.
class ScopedVariable {
public:
    ScopedVariable(const char* name, const std::string& value) : name_(name) {
        if (const char* const before = std::getenv(name)) {
            before_ = before;
        }
        ::setenv(name, value.c_str(), 1);
    }
    ScopedVariable(const ScopedVariable&) = delete;
    ScopedVariable& operator=(const ScopedVariable&) = delete;
    ~ScopedVariable() {
        if (before_) {
            ::setenv(name_, before_->c_str(), 1);
        } else {
            ::unsetenv(name_);
        }
    }

private:
    const char* name_;
    std::optional<std::string> before_;
};

TEST_F(CheckpointTest, FindsASnapshotInTheHubsCache) {
    const fs::path cache = folder_ / "hub";
    const fs::path model = cache / "models--me--tiny-1.0";
    const auto put_snapshot = [&](const std::string& revision) {
        fs::create_directories(model / "snapshots" / revision);
        put("hub/models--me--tiny-1.0/snapshots/" + revision + "/config.json", tiny_config);
        put("hub/models--me--tiny-1.0/snapshots/" + revision + "/model.safetensors", tiny_weights);
    };
    put_snapshot("aaa");
    put_snapshot("bbb");
    const ScopedVariable variable("HF_HUB_CACHE", cache.string());
    fs::create_directories(model / "refs");
    for (const std::string revision : {"aaa", "bbb"}) {
        put("hub/models--me--tiny-1.0/refs/main", revision + "\n");
        EXPECT_EQ(Checkpoint::open("me/tiny-1.0").folder, model / "snapshots" / revision);
        EXPECT_EQ(Checkpoint::open(model).folder, model / "snapshots" / revision) << "the cache's own folder";
    }
    fs::remove(model / "refs" / "main");
    fs::last_write_time(model / "snapshots" / "aaa",
                        fs::file_time_type::clock::now() + std::chrono::hours(1));
    EXPECT_EQ(Checkpoint::open("me/tiny-1.0").folder, model / "snapshots" / "aaa") << "the newest";
    const std::string other = opening("me/other");
    EXPECT_TRUE(other.ends_with("[file.missing]") && other.find("hf download me/other") != std::string::npos);
    EXPECT_EQ(opening("../me").find("hf download"), std::string::npos);
    const ScopedVariable older("HUGGINGFACE_HUB_CACHE", "");
    const ScopedVariable unset("HF_HUB_CACHE", "");
    const ScopedVariable home("HF_HOME", folder_.path().string());
    EXPECT_EQ(Checkpoint::open("me/tiny-1.0").folder, model / "snapshots" / "aaa");
}

TEST_F(CheckpointTest, ATraceIsNoCheckpoint) {
    put("run.ponder", std::string("SQLite format 3\0", 16) + std::string(84, ' '));
    const std::string said = opening(folder_ / "run.ponder");
    EXPECT_TRUE(said.starts_with("run.ponder: ") && said.ends_with("[file.kind]")) << said;
    EXPECT_NE(said.find("ponderscope inspect"), std::string::npos) << said;
}

TEST_F(CheckpointTest, OpensByFolderOrByAFileInside) {
    put_model();
    put("tokenizer.json", "{}");
    for (const fs::path& path : {folder_.path(), folder_ / "config.json", folder_ / "model.safetensors",
                                 folder_ / "tokenizer.json"}) {
        const Checkpoint checkpoint = Checkpoint::open(path);
        EXPECT_EQ(checkpoint.folder, folder_.path());
        EXPECT_EQ(checkpoint.config.hidden_size, 4);
        EXPECT_NE(checkpoint.weights.find("w"), nullptr);
        EXPECT_EQ(checkpoint.vocabulary, folder_ / "tokenizer.json");
    }
}

TEST_F(CheckpointTest, ATokenizerMayBeALinkAndOneThatLeadsNowhereIsNotOverlooked) {
    put_model();
    EXPECT_FALSE(Checkpoint::open(folder_.path()).vocabulary);
    put("vocab.json", "{}");
    EXPECT_FALSE(Checkpoint::open(folder_.path()).vocabulary);
    put("merges.txt", "");
    EXPECT_EQ(Checkpoint::open(folder_.path()).vocabulary, folder_ / "vocab.json");
    fs::create_symlink("../tokenizer/tokenizer.json", folder_ / "tokenizer.json");
    const auto file = Checkpoint::open(folder_.path()).vocabulary;
    ASSERT_TRUE(file);
    const std::string missing = sentence(folder_.path(), [&] { (void)read_file(*file); });
    EXPECT_TRUE(missing.starts_with("tokenizer.json: ") && missing.ends_with("[file.missing]")) << missing;
}

TEST_F(CheckpointTest, TheMethodIsPassedOn) {
    put_model();
    put("config.json", tiny_config.substr(0, tiny_config.size() - 1) +
                           R"(,"recurrent_model":true,"num_latent_thoughts":2})");
    EXPECT_GT(Checkpoint::open(folder_.path()).config.candidate_methods.size(), 1U);
    EXPECT_EQ(Checkpoint::open(folder_.path(), MethodKind::looped).config.ponder.method, MethodKind::looped);
}

TEST_F(CheckpointTest, WrongPathsAreNamed) {
    const auto expect_error = [&](const fs::path& path, const std::string& place, const std::string& id,
                                  const std::string& part = "") {
        const std::string error = opening(path);
        EXPECT_TRUE(error.starts_with(place + ": ") && error.ends_with('[' + id + ']')) << error;
        EXPECT_NE(error.find(part), std::string::npos) << error;
    };
    expect_error(folder_.path(), "", "checkpoint.files", "model.safetensors");
    expect_error(folder_ / "none", "none", "file.missing");
    put("model.safetensors", tiny_weights);
    expect_error(folder_.path(), "", "checkpoint.files", "config.json");
    expect_error(folder_ / "model.safetensors", "", "checkpoint.files", "config.json");
    fs::remove(folder_ / "model.safetensors");
    put("config.json", tiny_config);
    expect_error(folder_.path(), "", "checkpoint.files", "model.safetensors.index.json");
    put("other.txt", "x");
    expect_error(folder_ / "other.txt", "other.txt", "file.kind");
    fs::create_symlink("loop", folder_ / "loop");
    expect_error(folder_ / "loop", "loop", "file.kind");
    fs::create_directories(folder_ / "sub/config.json");
    expect_error(folder_ / "sub", "sub/config.json", "file.kind");
}

TEST_F(CheckpointTest, OnlyAPickle) {
    const std::string pickle("PK\x03\x04\0\0\0\0\0\0archive/data.pkl", 26);
    put("pytorch_model.bin", pickle);
    const auto is_refused = [&](const fs::path& path) {
        const std::string error = opening(path);
        return error.starts_with("pytorch_model.bin: ") && error.ends_with("[checkpoint.kind]");
    };
    EXPECT_TRUE(is_refused(folder_.path())) << "without a config";
    EXPECT_TRUE(is_refused(folder_ / "pytorch_model.bin")) << "given itself";
    put("config.json", tiny_config);
    EXPECT_TRUE(is_refused(folder_.path())) << "with a config";
    put("model.safetensors", tiny_weights);
    EXPECT_EQ(opening(folder_.path()), "") << "safetensors beside it are enough";
}

TEST_F(CheckpointTest, DigestOfOneFile) {
    put_model();
    const Checkpoint checkpoint = Checkpoint::open(folder_.path());
    EXPECT_EQ(checkpoint_digest(checkpoint),
              by_hand({{"config.json", tiny_config}, {"model.safetensors", tiny_weights}}));
}

TEST_F(CheckpointTest, DigestOfShardsIsByNameAndSeesEveryByte) {
    put("config.json", tiny_config);
    const std::string other =
        safetensors(R"({"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "5678");
    put("b.safetensors", tiny_weights);
    put("a.safetensors", other);
    put("model.safetensors.index.json", R"({"weight_map":{"w":"b.safetensors","v":"a.safetensors"}})");
    const std::string digest = checkpoint_digest(Checkpoint::open(folder_.path()));
    EXPECT_EQ(
        digest,
        by_hand({{"a.safetensors", other}, {"b.safetensors", tiny_weights}, {"config.json", tiny_config}}));
    std::string changed = other;
    changed.back() ^= 1;
    put("a.safetensors", changed);
    EXPECT_NE(checkpoint_digest(Checkpoint::open(folder_.path())), digest);
}

TEST_F(CheckpointTest, DigestReportsAndStops) {
    put("config.json", tiny_config);
    const std::size_t elements = 10'000'000;
    put("model.safetensors",
        safetensors(R"({"w":{"dtype":"F32","shape":[10000000],"data_offsets":[0,40000000]}})",
                    std::string(4 * elements, 'x')));
    const Checkpoint checkpoint = Checkpoint::open(folder_.path());
    std::vector<Progress> reports;
    checkpoint_digest(checkpoint, [&](const Progress& progress) { reports.push_back(progress); });
    ASSERT_FALSE(reports.empty());
    EXPECT_EQ(reports.back().done, reports.back().total);
    EXPECT_GT(reports.back().total, 40'000'000);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_THROW(checkpoint_digest(checkpoint, {}, stop.get_token()), Cancelled);
}

TEST_F(CheckpointTest, AnotherPathToTheSameFilesHasTheSameDigest) {
    put_model();
    const std::string digest = checkpoint_digest(Checkpoint::open(folder_.path()));
    EXPECT_EQ(checkpoint_digest(Checkpoint::open(folder_.path() / "")), digest);
    EXPECT_EQ(checkpoint_digest(Checkpoint::open(folder_.path() / "." / "config.json")), digest);
}

} // namespace
} // namespace ponderscope
