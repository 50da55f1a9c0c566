// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/files.h"
#include "tests/core/cli/run_program.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// What tests of record by several processes share: a world without a launcher, a corpus, and exports that
/// are compared.
namespace ponderscope::testing {

/// A process of a world, as torchrun starts it.
class InWorld {
public:
    InWorld(int rank, int size) {
        ::setenv("RANK", std::to_string(rank).c_str(), 1);
        ::setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
        ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    }
    ~InWorld() {
        for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK"}) {
            ::unsetenv(name);
        }
    }
    InWorld(const InWorld&) = delete;
    InWorld& operator=(const InWorld&) = delete;
};

class Shards : public ::testing::Test {
protected:
    TemporaryFolder folder;
    std::string model = folder / "model";
    std::string corpus = folder / "corpus.jsonl";
    std::vector<std::string> how; ///< options of record beside input and output

    void SetUp() override {
        TinyCheckpoint().write(model);
        std::string lines;
        for (int i = 0; i < 23; ++i) {
            std::string text = "Line " + std::to_string(i) + " of a small corpus,";
            for (int word = 0; word < i * i % 37; ++word) {
                text += " caf\u00e9 " + std::to_string(word * i);
            }
            const std::size_t half = text.size() / 2 - text.size() / 2 % 5;
            lines +=
                nlohmann::json{{"text", text},
                               {"author", i % 2 == 0 ? "Ann" : "Bo"},
                               {"parts", nlohmann::json::array(
                                             {{{"begin", 0}, {"end", half}, {"class", "front"}},
                                              {{"begin", half}, {"end", text.size()}, {"class", "back"}}})}}
                    .dump() +
                "\n";
        }
        write_file_atomically(corpus, lines);
        how = {"--jsonl",  corpus, "--group-field", "author", "--label-field", "parts", "--context", "32",
               "--stride", "16",   "--batch",       "4",      "--name",        "run"};
    }
    [[nodiscard]] std::vector<std::string> record_to(const std::string& trace) const {
        std::vector<std::string> line{"record", model, "-o", trace};
        line.insert(line.end(), how.begin(), how.end());
        return line;
    }
    void record_in_world(const std::string& trace, int size) const {
        for (int rank = 0; rank < size; ++rank) {
            const InWorld world(rank, size);
            succeed(record_to(trace));
        }
    }
    static std::string shard(const std::string& trace, int rank, int size) {
        char name[32];
        std::snprintf(name, sizeof name, ".r%04d-of-%04d.ponder", rank, size);
        return trace.substr(0, trace.size() - 7) + name;
    }
    /// Every file of an export, as if all had been recorded at one moment.
    [[nodiscard]] std::map<std::string, std::string> exported(const std::string& trace) const {
        if (std::filesystem::exists(trace)) { // else it is one in shards
            sql(trace, "UPDATE run SET started = '2026-01-01T00:00:00Z', seconds = 1");
        }
        const std::string tables = folder / ("tables" + std::to_string(std::rand()));
        succeed({"export", trace, "-o", tables});
        std::map<std::string, std::string> files;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(tables)) {
            if (entry.is_regular_file()) {
                files[std::filesystem::relative(entry.path(), tables)] = read_file(entry.path());
            }
        }
        return files;
    }
    void expect_equal(const std::map<std::string, std::string>& one,
                      const std::map<std::string, std::string>& other, const std::string& which) const {
        ASSERT_EQ(one.size(), other.size()) << which;
        for (const auto& [name, content] : one) {
            EXPECT_TRUE(other.at(name) == content)
                << which << ": " << name << " differs\n"
                << (name == "runs.csv" || name == "sequences.csv" ? content + "\n" + other.at(name) : "");
        }
    }
};

} // namespace ponderscope::testing
