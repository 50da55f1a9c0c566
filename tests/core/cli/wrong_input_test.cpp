// SPDX-License-Identifier: GPL-3.0-or-later
// Wrong input: one sentence on stderr that names the culprit, exit code 2, nothing half-written.
#include "core/base/files.h"
#include "core/base/json.h"
#include "tests/core/cli/run_program.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include <sys/mount.h>
#include <unistd.h>

namespace ponderscope {
namespace {

using namespace testing;

class WrongInput : public ::testing::Test {
protected:
    void SetUp() override {
        TinyCheckpoint{}.write(folder_ / "good");
        write_file_atomically(folder_ / "text.txt", "A text that is long enough.");
    }

    std::string at(const std::string& name) const { return (folder_ / name).string(); }

    /// Records into a trace that must not exist afterwards, and expects one sentence that holds \p words.
    void expect_sentence(std::vector<std::string> arguments, const std::vector<std::string>& words) const {
        arguments.insert(arguments.begin(), "record");
        arguments.insert(arguments.end(), {"-o", at("never.ponder")});
        const ProgramResult result = run_ponderscope(arguments);
        expect_refusal(result, words);
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
            EXPECT_FALSE(entry.path().filename().string().starts_with("never.ponder"))
                << entry.path() << " was left behind";
        }
    }

    static void expect_refusal(const ProgramResult& result, const std::vector<std::string>& words) {
        EXPECT_EQ(result.code, 2) << result.err;
        EXPECT_TRUE(result.out.empty()) << result.out;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << "one sentence, one line:\n"
                                                                             << result.err;
        EXPECT_TRUE(result.err.ends_with("]\n")) << result.err;
        EXPECT_LT(result.err.size(), 900U) << result.err;
        for (const std::string& word : words) {
            EXPECT_NE(result.err.find(word), std::string::npos)
                << "expected '" << word << "' in: " << result.err;
        }
    }

    void change_config(const std::string& name, const std::function<void(nlohmann::json&)>& change) const {
        std::filesystem::copy(folder_ / "good", folder_ / name, std::filesystem::copy_options::recursive);
        nlohmann::json config = read_json_file(folder_ / name / "config.json");
        change(config);
        write_file_atomically(folder_ / name / "config.json", config.dump());
    }

    TemporaryFolder folder_;
};

// Of every kind of input one: all that is refused of configs, weights, texts and plans is tested where they
// are read.
TEST_F(WrongInput, Recordings) {
    write_file_atomically(folder_ / "ids.json", "[[1, 2, 256]]");
    write_file_atomically(folder_ / "empty.txt", "");
    write_file_atomically(folder_ / "latin1.txt", "caf\xe9 au lait");
    write_file_atomically(folder_ / "long.txt", std::string(19000, 'a'));
    const auto section = [](const char* method) {
        return nlohmann::json{{"pondering", {{"method", method}, {"max_steps", 2}}}};
    };
    const auto tiny = [](nlohmann::json keys) {
        keys.update(nlohmann::json::parse(R"({"hidden_size": 16, "intermediate_size": 32,
            "num_hidden_layers": 4, "num_attention_heads": 2, "vocab_size": 256,
            "max_position_embeddings": 64})"));
        return keys;
    };
    const nlohmann::json plain = nlohmann::json::object(), looped = section("looped");
    struct Case {
        nlohmann::json keys; ///< of config.json beside those of a sound one
        std::vector<std::string> options;
        std::vector<std::string> words;
    };
    const Case cases[] = {
        {{{"model_type", "rwkv"}}, {}, {"rwkv", "gpt_neox", "[checkpoint.architecture]"}},
        {{{"num_hidden_layers", 3}}, {}, {"layers.2", "[checkpoint.tensor]"}},
        {tiny({{"model_type", "gpt2"}, {"use_depth_attention", true}, {"recurrent_model", true}}),
         {},
         {"Depth-Attention", "gpt2"}},
        {tiny({{"model_type", "opt"},
               {"ffn_dim", 32},
               {"word_embed_proj_dim", 8},
               {"pondering", looped["pondering"]}}),
         {},
         {"loop", "8", "16"}},
        {{{"num_latent_thoughts", 2}, {"recurrent_model", true}},
         {},
         {"ponderlm2", "pause", "looped", "--method"}},
        {plain, {"--method", "ponderlm3"}, {"pondering", "ponderlm3"}},
        {plain, {"--method", "pondering"}, {"pondering", "ponderlm"}},
        {section("ponderlm2"), {"--jacobi", "many"}, {"--jacobi", "many"}},
        {section("ponderlm2"), {"--jacobi=-1"}, {"--jacobi", "-1"}},
        {looped, {"--jacobi", "3"}, {"looped", "[usage.unsuited]"}},
        {looped, {"--policy", "sometimes"}, {"sometimes", "[policy.unknown]"}},
        {plain, {"--policy", "learned:theta=0.5"}, {"vanilla", "[policy.unsuited]"}},
        {looped, {"--record", "layers"}, {"vanilla", "looped", "[usage.unsuited]"}},
        {looped, {"--force-steps", "3"}, {"--force-steps", "'3'"}},
        {looped, {"--force-steps", "1:3"}, {"--force-steps", "3", "2"}},
        {looped, {"--force-steps", "1000:1"}, {"--force-steps", "1000"}},
        {looped, {"--force-steps", "1:0,1:2"}, {"--force-steps", " 1 ", "[usage.value]"}},
        {looped,
         {"--kv", "shared", "--policy", "fixed:n=1", "--attention", "0"},
         {"--kv full", "[usage.unsuited]"}},
        {plain, {"--attention=2"}, {"--attention", " 0 ", " 1", " 2", "[usage.value]"}},
        {plain, {"--attention=0:0-2"}, {"--attention", " 0 ", " 1", "0-2", "[usage.value]"}},
        {plain, {"--dtype", "float8"}, {"float8", "bfloat16"}},
        {plain, {"--device", "tpu"}, {"tpu"}},
        {plain, {"--context", "100000"}, {"100000", "64"}},
        {plain, {"--context", "16", "--stride", "17"}, {"17", "16"}},
        {plain, {"--record", "everything"}, {"everything"}},
        {plain, {"--no-such-flag"}, {"--no-such-flag"}},
        {plain, {"--prompt", "and this"}, {"--prompt"}}};
    int number = 0;
    for (const Case& one : cases) {
        const std::string name = "case" + std::to_string(++number);
        SCOPED_TRACE(name + " " + one.keys.dump());
        change_config(name, [&](nlohmann::json& config) {
            config = one.keys.contains("hidden_size") ? nlohmann::json::object() : config; // a whole one
            config.update(one.keys);
        });
        expect_sentence(Words{at(name), "--text", at("text.txt")} + one.options, one.words);
    }
    const std::pair<std::vector<std::string>, std::vector<std::string>> others[] = {
        {{at("nowhere"), "--text", at("text.txt")}, {at("nowhere")}},
        {{at("good"), "--text", at("absent.txt")}, {"absent.txt"}},
        {{at("good"), "--text", at("good")}, {at("good")}},
        {{at("good"), "--text", at("empty.txt")}, {"empty.txt", "[text.empty]"}},
        {{at("good"), "--text", at("latin1.txt")}, {"latin1.txt", "3", "[text.bytes]"}},
        {{at("good"), "--ids", at("ids.json")}, {"256"}},
        {{at("good")}, {"--text"}}};
    for (const auto& [arguments, words] : others) {
        expect_sentence(arguments, words);
    }
    if (!std::filesystem::exists("/dev/nvidia0")) {
        expect_sentence({at("good"), "--text", at("text.txt"), "--device", "cuda"}, {"cuda", "cpu"});
    }
    // More than fits into memory at once: the sentence says what would.
    TinyCheckpoint long_one{.max_positions = 20000};
    long_one.write(folder_ / "long");
    expect_sentence({at("long"), "--text", at("long.txt"), "--context", "19000", "--attention", "all"},
                    {"--attention", "19000", "--context", "[text.long]"});
    const std::string whole = read_file(folder_ / "good" / "model.safetensors");
    std::filesystem::copy(folder_ / "good", folder_ / "cut");
    write_file_atomically(folder_ / "cut" / "model.safetensors", whole.substr(0, whole.size() - 100));
    expect_sentence({at("cut"), "--text", at("text.txt")}, {"model.safetensors", "embed_out.weight"});
}

TEST_F(WrongInput, Tokenizers) {
    TinyCheckpoint few_words{.vocab_size = 100};
    few_words.write(folder_ / "other-tokenizer");
    expect_sentence({at("other-tokenizer"), "--text", at("text.txt")}, {"tokenizer.json", "100", "255"});
    // A word that only the tokenizer knows is harmless until the text has it.
    nlohmann::json tokenizer = read_json_file(folder_ / "good" / "tokenizer.json");
    nlohmann::json far{{"id", 256}, {"content", "<far>"}, {"special", true}};
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) {
        far[flag] = false;
    }
    tokenizer["added_tokens"].push_back(far);
    std::filesystem::copy(folder_ / "good", folder_ / "added");
    write_file_atomically(folder_ / "added" / "tokenizer.json", tokenizer.dump());
    expect_sentence({at("added"), "--prompt", "so <far> away"}, {"256"});
    succeed({"record", at("added"), "--prompt", "so far", "-o", at("fine.ponder")});
    TinyCheckpoint{}.write(folder_ / "no-tokenizer", false);
    expect_sentence({at("no-tokenizer"), "--text", at("text.txt")}, {"tokenizer.json", "--ids"});
    // A single token is no text to record, and is tokenised all the same.
    write_file_atomically(folder_ / "one.txt", "x");
    expect_sentence({at("good"), "--text", at("one.txt")}, {"one.txt", "[text.empty]"});
    const std::string one = succeed({"tokenize", at("good"), "--text", at("one.txt"), "--json"});
    EXPECT_EQ(nlohmann::json::parse(one).at(0).size(), 1U);
    write_file_atomically(folder_ / "ids.json", one);
    EXPECT_EQ(succeed({"tokenize", at("good"), "--decode", at("ids.json"), "--json"}), "[\"x\"]\n");
    const std::string nothing = refused({"tokenize", at("good")}); // which takes no ids
    EXPECT_NE(nothing.find("--prompt"), std::string::npos) << nothing;
    EXPECT_EQ(nothing.find("--ids"), std::string::npos) << nothing;
}

TEST_F(WrongInput, NamesOfOtherMachines) {
    const std::string far = "ssh://server/far";
    const ProgramResult to =
        run_ponderscope({"record", at("good"), "--text", at("text.txt"), "-o", "ssh://server/far/x.ponder"});
    expect_refusal(to, {"ssh://server/far/x.ponder", "[trace.remote]"});
    expect_refusal(run_ponderscope({"lineage", far, at("good")}), {far, "[trace.remote]"});
    expect_refusal(run_ponderscope({"record", far, "--text", at("text.txt"), "-o", at("x.ponder")}),
                   {far, "[trace.remote]"});
}

TEST_F(WrongInput, VerbsAndOptions) {
    expect_refusal(run_ponderscope({"recrod", at("good")}), {"recrod", " record", "[usage.verb]"});
    expect_refusal(run_ponderscope({"unlike"}), {"unlike", "[usage.verb]"});
    expect_refusal(run_ponderscope({}), {"[usage.verb]"});
    expect_refusal(run_ponderscope({"stats", "a.ponder", "--sweep", "theta=1:2:3"}),
                   {"--sweep", "stats --help", "[usage.option]"});
    expect_refusal(run_ponderscope({"record", at("good"), "--devise=cpu"}),
                   {"--devise", "--device", "[usage.option]"});
    expect_refusal(run_ponderscope({"check", "a.ponder", "b.ponder"}), {"b.ponder", "[usage.option]"});
    expect_refusal(run_ponderscope({"inspect", at("nosuch.ponder")}), {"nosuch.ponder", "[file.missing]"});
}

#ifdef PONDERSCOPE_FEIGNED_GPU
TEST_F(WrongInput, GpusThatCannotBeUsed) {
    const auto with = [&](const char* gpu, const char* device, const std::vector<std::string>& words) {
        SCOPED_TRACE(std::string(gpu) + ", " + device);
        ::setenv("LD_PRELOAD", PONDERSCOPE_FEIGNED_GPU, 1);
        ::setenv("FEIGNED_GPU", gpu, 1);
        expect_sentence({at("good"), "--text", at("text.txt"), "--device", device}, words);
        ::unsetenv("LD_PRELOAD");
        ::unsetenv("FEIGNED_GPU");
    };
    for (const char* device : {"cuda", "cuda:0"}) {
        with("old driver", device, {"11040", "--device cpu", "[device.unusable]"});
        with("7.5", device, {"cuda", "Feigned GPU", "capability 7.5", "8.0", "--device cpu"});
    }
    with("9.0", "cuda:7", {"cuda:7", "1 GPU,", "[device.unusable]"});
    // What is taken by itself is the CPU.
    ::setenv("LD_PRELOAD", PONDERSCOPE_FEIGNED_GPU, 1);
    ::setenv("FEIGNED_GPU", "7.5", 1);
    const ProgramResult result = run_ponderscope(
        {"record", at("good"), "--text", at("text.txt"), "--device", "auto", "-o", at("auto.ponder")});
    ::unsetenv("LD_PRELOAD");
    ::unsetenv("FEIGNED_GPU");
    EXPECT_EQ(result.code, 0) << result.err;
}
#endif

TEST_F(WrongInput, Traces) {
    const std::vector<std::string> good{"record", at("good"), "--text", at("text.txt"), "-o"};
    const auto record_to = [&](const std::string& trace, const std::string& limits = "") {
        std::vector<std::string> arguments = good;
        arguments.push_back(trace);
        return run_ponderscope(arguments, limits);
    };
    write_file_atomically(folder_ / "note.ponder", "this is no database, but it is somebody's text");
    expect_refusal(record_to(at("note.ponder")), {"note.ponder", "[trace.kind]"});
    EXPECT_EQ(read_file(folder_ / "note.ponder"), "this is no database, but it is somebody's text");

    sqlite3* foreign = nullptr;
    ASSERT_EQ(sqlite3_open(at("foreign.db").c_str(), &foreign), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(foreign, "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)", nullptr, nullptr,
                           nullptr),
              SQLITE_OK);
    sqlite3_close(foreign);
    const std::string before = read_file(folder_ / "foreign.db");
    expect_refusal(record_to(at("foreign.db")), {"foreign.db", "[trace.kind]"});
    EXPECT_EQ(read_file(folder_ / "foreign.db"), before) << "somebody else's database was touched";
    expect_refusal(run_ponderscope({"inspect", at("foreign.db")}), {"foreign.db", "[trace.kind]"});

    ASSERT_EQ(record_to(at("newer.ponder")).code, 0);
    sqlite3* newer = nullptr;
    ASSERT_EQ(sqlite3_open(at("newer.ponder").c_str(), &newer), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(newer, "PRAGMA user_version = 999", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(newer);
    expect_refusal(record_to(at("newer.ponder")), {"newer.ponder", "999", "[trace.kind]"});
    expect_refusal(run_ponderscope({"inspect", at("newer.ponder")}), {"newer.ponder", "999", "[trace.kind]"});

    expect_refusal(record_to(at("no/such/folder/t.ponder")), {"no/such/folder", "[file.missing]"});
    expect_refusal(record_to(at("good")), {at("good")});
    // A link whose file cannot be made, as on a disk that is not mounted, stays; one whose file can, is
    // written through.
    std::filesystem::create_symlink("away/t.ponder", folder_ / "link.ponder");
    expect_refusal(record_to(at("link.ponder")), {"away/t.ponder", "[environment.failed]"});
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link.ponder"));
    std::filesystem::create_symlink("loop.ponder", folder_ / "loop.ponder");
    expect_refusal(record_to(at("loop.ponder")), {"loop.ponder", "[file.kind]"});
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "loop.ponder")) << "it was somebody's";
    expect_refusal(record_to(""), {"--output", "[usage.value]"});
    expect_refusal(run_ponderscope({"export", at("newer.ponder"), "-o", ""}), {"--output", "[usage.value]"});
    expect_refusal(run_ponderscope({"stats", at("newer.ponder"), "--csv", ""}), {"--csv", "[usage.value]"});
    std::filesystem::create_directory(folder_ / "away");
    EXPECT_EQ(record_to(at("link.ponder")).code, 0);
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link.ponder"));
    EXPECT_TRUE(std::filesystem::is_regular_file(folder_ / "away/t.ponder"));
    if (::geteuid() != 0) { // root may write anywhere
        std::filesystem::create_directory(folder_ / "locked");
        std::filesystem::permissions(folder_ / "locked",
                                     std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
        expect_refusal(record_to(at("locked/t.ponder")), {"locked"});
        std::filesystem::permissions(folder_ / "locked", std::filesystem::perms::owner_all);
    }
}

TEST_F(WrongInput, DiskFull) {
    std::filesystem::create_directory(folder_ / "small");
    if (::mount("tmpfs", at("small").c_str(), "tmpfs", 0, "size=256k") != 0) {
        GTEST_SKIP() << "a small tmpfs cannot be mounted here (no permission), so the disk cannot be filled";
    }
    std::string text;
    for (int i = 0; i < 2000; ++i) {
        text += "A long text that fills the disk, line " + std::to_string(i) + ". ";
    }
    write_file_atomically(folder_ / "long.txt", text);
    const std::string result =
        refused({"record", at("good"), "--text", at("long.txt"), "-o", at("small/t.ponder")});
    EXPECT_EQ(std::count(result.begin(), result.end(), '\n'), 1) << result;
    EXPECT_NE(result.find("[file.space]"), std::string::npos) << result;
    // What was flushed before is a valid trace that says it is partial, or there was no room for any.
    if (std::filesystem::exists(folder_ / "small" / "t.ponder") &&
        std::filesystem::file_size(folder_ / "small" / "t.ponder") > 0) {
        const ProgramResult inspected = run_ponderscope({"inspect", at("small/t.ponder"), "--json"});
        if (inspected.code == 0) {
            const auto report = nlohmann::json::parse(inspected.out);
            for (const nlohmann::json& run : report.at("runs")) {
                EXPECT_FALSE(run.at("complete").get<bool>());
            }
        } else {
            EXPECT_EQ(inspected.code, 2) << inspected.err;
        }
    }
    ASSERT_EQ(::umount(at("small").c_str()), 0);
}

TEST_F(WrongInput, ATraceOrACheckpointIsNotReplaced) {
    const std::string notes = at("notes.csv");
    const std::vector<std::vector<std::string>> commands{
        {"page", notes, "-o", notes},       {"stats", notes, "--csv", notes},
        {"policy", notes, "--csv", notes},  {"policy", notes, "--per-token", notes},
        {"referee", notes, "--csv", notes}, {"referee", notes, "--tex", notes}};
    const std::string weights = read_file(folder_ / "good" / "model.safetensors");
    for (const std::vector<std::string>& command : commands) {
        SCOPED_TRACE(command[0] + " " + command[command.size() - 2]);
        for (const std::string& content : {std::string("SQLite format 3") + '\0', weights}) {
            write_file_atomically(notes, content);
            expect_refused(command, {notes, "[usage.value]"});
            EXPECT_EQ(read_file(notes), content);
        }
    }
    write_file_atomically(at("ids.json"), "[[1, 2]]");
    const auto logits = [&](const std::string& output) {
        return run_ponderscope({"logits", at("good"), "--ids", at("ids.json"), "-o", at(output)});
    };
    expect_refusal(logits("good/model.safetensors"), {"model.safetensors", "[file.exists]"});
    EXPECT_EQ(read_file(folder_ / "good" / "model.safetensors"), weights);
    EXPECT_EQ(logits("out.safetensors").code, 0);
    EXPECT_EQ(logits("out.safetensors").code, 0) << "its own file is replaced";
}

} // namespace
} // namespace ponderscope
