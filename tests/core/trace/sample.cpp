// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/trace/sample.h"

#include "core/base/splitmix.h"
#include "core/trace/shard.h"
#include "tests/support/half.h"
#include "tests/support/packed.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <sqlite3.h>
#include <stdexcept>

namespace ponderscope::testing {
namespace {

constexpr const char* words[] = {"the ",
                                 "stone ",
                                 "of ",
                                 ("r\xC3\xBC"
                                  "be "),
                                 "water ",
                                 "and "};

class Connection {
public:
    explicit Connection(const std::filesystem::path& path) {
        if (sqlite3_open(path.c_str(), &handle) != SQLITE_OK) {
            throw std::runtime_error("cannot open " + path.string());
        }
        sqlite3_busy_timeout(handle, 2000);
    }
    ~Connection() { sqlite3_close(handle); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    sqlite3* handle = nullptr;
};

} // namespace

RunInfo sample_run(const std::string& name) {
    RunInfo run;
    run.name = name;
    run.checkpoint = "models/small";
    run.checkpoint_digest = "c0ffee";
    run.architecture = "gpt_neox";
    run.method = "ponderlm";
    run.depth_mixing = "none";
    run.policy = "full";
    run.scoring = "exact";
    run.device = "cpu";
    run.dtype = "float32";
    run.record_level = "steps";
    run.text_source = "passage.txt";
    run.text_digest = "abad1dea";
    run.tokenizer_digest = "70ce";
    run.versions = R"({"ponderscope":"0.1.0"})";
    run.config = R"({"model_type":"gpt_neox"})";
    run.notices = R"(["A notice."])";
    run.flops_model = R"({"slot":3})";
    run.step_unit = "layer";
    run.seed = 0xFFFFFFFFFFFFFFFEULL;
    run.max_steps = sample_steps - 1;
    run.layers = 6;
    run.vocab_size = 50304;
    run.context = 512;
    run.stride = 256;
    run.started = "2026-11-21T11:45:00Z";
    return run;
}

std::vector<SignalInfo> sample_signals() {
    const std::vector<std::string> token{"token"}, by_step{"token", "step"},
        candidates{"token", "step", "candidate"};
    return {
        {signal::nll, by_step, "nats", "NLL by step", "Of the read-out after each step.", DType::f32,
         SignalStorage::plain, false, true},
        {signal::rank, by_step, "", "Rank by step", "1 + the number of larger logits.", DType::i32,
         SignalStorage::plain, false, true},
        {signal::candidate_ids, candidates, "", "Candidates", "Ids of the ten likeliest.", DType::i32},
        {signal::candidate_probabilities, candidates, "probability", "Candidates", "Their probabilities.",
         DType::f16},
        {"unused", token, "", "Never given", "Announced, but not recorded."},
    };
}

std::string sample_text(std::int64_t tokens) {
    std::string text;
    for (std::int64_t t = 0; t < tokens; ++t) {
        text += words[t % 6];
    }
    return text;
}

TokenColumns sample_tokens(std::uint64_t seed, std::int64_t first, std::int64_t count, std::int64_t total) {
    TokenColumns columns;
    columns.first = first;
    std::uint64_t offset = 0;
    for (std::int64_t t = 0; t < first; ++t) {
        offset += std::strlen(words[t % 6]);
    }
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t t = first; t < first + count; ++t) {
        const auto at = static_cast<std::uint64_t>(t);
        const bool scored = t + 1 < total;
        columns.id.push_back(static_cast<std::int32_t>(bounded(splitmix64(seed, at), 50304)));
        columns.begin.push_back(offset);
        offset += std::strlen(words[t % 6]);
        columns.end.push_back(offset);
        const double u = unit_interval(splitmix64(seed + 1, at));
        columns.nll.push_back(scored ? static_cast<float>(8 * u * u) : nan);
        columns.entropy.push_back(static_cast<float>(5 * u));
        columns.max_probability.push_back(static_cast<float>(1 - u));
        columns.rank.push_back(scored ? 1 + static_cast<std::int32_t>(1000 * u * u * u) : 0);
        columns.steps.push_back(static_cast<std::int32_t>(at % sample_steps));
        columns.flops.push_back(140'000'000 + t * 1000);
    }
    return columns;
}

std::vector<std::pair<std::string, SignalChunk>> sample_chunks(std::uint64_t seed, std::int64_t first,
                                                               std::int64_t count) {
    std::vector<float> nll;
    std::vector<std::int32_t> rank;
    std::vector<std::int32_t> ids;
    std::vector<std::uint16_t> probabilities;
    for (std::int64_t t = first; t < first + count; ++t) {
        for (std::int64_t k = 0; k < sample_steps; ++k) {
            const auto at = static_cast<std::uint64_t>(t * sample_steps + k);
            const double u = unit_interval(splitmix64(seed + 2, at));
            nll.push_back(k > t % sample_steps ? std::numeric_limits<float>::quiet_NaN()
                                               : static_cast<float>(9 * u));
            rank.push_back(static_cast<std::int32_t>(50304 * u));
            for (std::int64_t c = 0; c < sample_candidates; ++c) {
                ids.push_back(static_cast<std::int32_t>(
                    bounded(splitmix64(seed + 3, at * 10 + static_cast<std::uint64_t>(c)), 50304)));
                probabilities.push_back(float_to_float16(static_cast<float>(u / static_cast<double>(c + 2))));
            }
        }
    }
    const std::vector<std::int64_t> by_step{count, sample_steps},
        wide{count, sample_steps, sample_candidates};
    return {{signal::nll, packed(DType::f32, by_step, nll, first)},
            {signal::rank, packed(DType::i32, by_step, rank, first)},
            {signal::candidate_ids, packed(DType::i32, wide, ids, first)},
            {signal::candidate_probabilities, packed(DType::f16, wide, probabilities, first)}};
}

void write_sample_run(TraceWriter& writer, const std::string& name, std::uint64_t seed,
                      const std::vector<std::int64_t>& lengths, std::int64_t piece) {
    writer.begin_run(sample_run(name), sample_signals());
    for (std::size_t s = 0; s < lengths.size(); ++s) {
        writer.begin_sequence("text " + std::to_string(s), sample_text(lengths[s]));
        for (std::int64_t first = 0; first < lengths[s]; first += piece) {
            const std::int64_t count = std::min(piece, lengths[s] - first);
            writer.append(sample_tokens(seed + s, first, count, lengths[s]),
                          sample_chunks(seed + s, first, count));
        }
        writer.end_sequence();
    }
    std::vector<std::pair<std::int32_t, std::string>> vocabulary;
    for (std::int32_t id = 0; id < 100; ++id) {
        vocabulary.emplace_back(id, "<" + std::to_string(id) + ">");
    }
    writer.put_vocabulary(vocabulary);
    writer.end_run(12.5);
}

void write_sample_shards(const std::filesystem::path& trace, const std::string& name, std::int64_t tokens,
                         std::int64_t world) {
    for (std::int64_t rank = 0; rank < world; ++rank) {
        TraceWriter writer(shard_path(trace, rank, world));
        writer.begin_run(sample_run(name), sample_signals(), ShardInfo{rank, world, 1});
        writer.begin_sequence("text " + std::to_string(rank), sample_text(tokens), {}, rank);
        const auto seed = static_cast<std::uint64_t>(rank);
        writer.append(sample_tokens(seed, 0, tokens, tokens), sample_chunks(seed, 0, tokens));
        writer.end_sequence();
        writer.end_run(1);
        writer.finish();
    }
}

void sql(const std::filesystem::path& path, const std::string& statements) {
    const Connection connection(path);
    char* message = nullptr;
    if (sqlite3_exec(connection.handle, statements.c_str(), nullptr, nullptr, &message) != SQLITE_OK) {
        const std::string what = message != nullptr ? message : "?";
        sqlite3_free(message);
        throw std::runtime_error(what + " in: " + statements);
    }
}

std::string sql_value(const std::filesystem::path& path, const std::string& query) {
    const Connection connection(path);
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(connection.handle, query.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
        throw std::runtime_error(std::string(sqlite3_errmsg(connection.handle)) + " in: " + query);
    }
    std::string value;
    const int code = sqlite3_step(statement);
    if (code == SQLITE_ROW && sqlite3_column_text(statement, 0) != nullptr) {
        value.assign(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)),
                     static_cast<std::size_t>(sqlite3_column_bytes(statement, 0)));
    }
    const std::string error =
        code == SQLITE_ROW || code == SQLITE_DONE ? "" : sqlite3_errmsg(connection.handle);
    sqlite3_finalize(statement);
    if (!error.empty()) {
        throw std::runtime_error(error + " in: " + query);
    }
    return value;
}

} // namespace ponderscope::testing
