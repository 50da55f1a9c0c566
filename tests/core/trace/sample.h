// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "core/trace/writer.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope::testing {

inline constexpr std::int64_t sample_steps = 4;       ///< K = 3
inline constexpr std::int64_t sample_candidates = 10; ///< a step

/// A run as `--record steps` makes it: every field of RunInfo set to something of its own.
RunInfo sample_run(const std::string& name);
std::vector<SignalInfo> sample_signals();
/// Text of \p tokens words of three to six bytes, one of them of two-byte characters.
std::string sample_text(std::int64_t tokens);
/// Tokens [first, first + count) of a sequence over sample_text(total); the last of the sequence is not
/// scored. A pure function of its arguments and the seed.
TokenColumns sample_tokens(std::uint64_t seed, std::int64_t first, std::int64_t count, std::int64_t total);
std::vector<std::pair<std::string, SignalChunk>> sample_chunks(std::uint64_t seed, std::int64_t first,
                                                               std::int64_t count);
/// A whole run: sequences of the given lengths, appended in pieces of \p piece tokens.
void write_sample_run(TraceWriter& writer, const std::string& name, std::uint64_t seed,
                      const std::vector<std::int64_t>& lengths, std::int64_t piece);

/// What \p fill writes into a trace, finished.
template <class Fill>
void write_trace(const std::filesystem::path& path, const Fill& fill) {
    TraceWriter writer(path);
    fill(writer);
    writer.finish();
}
/// Adds a sample run to the trace, which is new if the file is missing.
inline void add_sample_run(const std::filesystem::path& path, const std::string& name, std::uint64_t seed,
                           const std::vector<std::int64_t>& lengths, std::int64_t piece) {
    write_trace(path, [&](TraceWriter& writer) { write_sample_run(writer, name, seed, lengths, piece); });
}
/// A whole sequence in one append.
inline void add_sequence(TraceWriter& writer, const std::string& title, const std::string& text,
                         const TokenColumns& tokens,
                         const std::vector<std::pair<std::string, SignalChunk>>& chunks = {}) {
    writer.begin_sequence(title, text);
    writer.append(tokens, chunks);
    writer.end_sequence();
}
inline void add_sample_sequence(TraceWriter& writer, std::uint64_t seed, std::int64_t tokens) {
    add_sequence(writer, "", sample_text(tokens), sample_tokens(seed, 0, tokens, tokens),
                 sample_chunks(seed, 0, tokens));
}

/// A sample run of one sequence a shard, as \p world processes record it together; they lie beside \p trace.
void write_sample_shards(const std::filesystem::path& trace, const std::string& name, std::int64_t tokens,
                         std::int64_t world);

/// Runs SQL on a file with nothing switched off, as a stranger would. Throws std::runtime_error.
void sql(const std::filesystem::path& path, const std::string& statements);
/// First column of the first row, as text.
std::string sql_value(const std::filesystem::path& path, const std::string& query);
/// Whether the pages of the file are whole.
inline bool is_sound(const std::filesystem::path& path) {
    return sql_value(path, "PRAGMA quick_check(1)") == "ok";
}

} // namespace ponderscope::testing
