// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/kept_digests.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/trace/digests.h"
#include "core/trace/rows.h"
#include "core/trace/shard.h"
#include "core/trace/tools/check.h"
#include "core/trace/trace_file.h"

namespace ponderscope {
namespace {

std::optional<std::int64_t> digest_in(const Statement& row, int column) {
    return row.is_null(column) ? std::nullopt : std::optional(row.integer(column));
}

std::uint32_t digest_of_rows(Statement& rows) {
    const StatementReset reset{rows};
    RowDigest digest;
    while (rows.step()) {
        digest.add(rows);
    }
    return digest.value();
}

std::uint32_t digest_of_pieces(Statement& rows) {
    const StatementReset reset{rows};
    std::uint32_t crc = 0;
    while (rows.step()) {
        crc = crc32_of(rows.blob(0), crc);
    }
    return crc;
}

} // namespace

void each_digest(Database& database, std::int64_t run,
                 const std::function<void(const DigestedPart&)>& visit) {
    Statement words =
        database.prepare("SELECT v.id, v.bytes, v.crc32 FROM run r JOIN vocabulary v ON v.tokenizer = "
                         "r.tokenizer WHERE r.id = ? AND v.crc32 IS NOT NULL");
    words.bind(1, run);
    while (words.step()) {
        visit({"token id " + std::to_string(words.integer(0)) + " in the table vocabulary", words.integer(2),
               crc32_of(words.blob(1)), -1, false});
    }
    Statement pieces = database.prepare("SELECT bytes FROM text WHERE row >= ? AND row < ? ORDER BY row");
    Statement tokens = database.prepare("SELECT " + schema::columns_of("token_row") +
                                        " FROM token_row WHERE row >= ? AND row < ? ORDER BY row");
    // Packed tokens are in a chunk, which has a CRC-32 itself.
    Statement sequences = database.prepare(
        "SELECT s.id, s.number, s.text_bytes, s.text_crc32, s.tokens_crc32, r.record_level = 'scalars' "
        "FROM sequence s JOIN run r ON r.id = s.run WHERE r.id = ? ORDER BY s.number");
    sequences.bind(1, run);
    while (sequences.step()) {
        const std::int64_t first = sequences.integer(0) << schema::position_bits;
        const std::int64_t last = (sequences.integer(0) + 1) << schema::position_bits;
        const std::int64_t number = sequences.integer(1);
        const std::string of = " of sequence " + std::to_string(number);
        if (sequences.integer(2) > 0) {
            pieces.bind_all(first, last);
            visit({"the text" + of, digest_in(sequences, 3), digest_of_pieces(pieces), number, false});
        }
        if (sequences.integer(5) == 0) {
            tokens.bind_all(first, last);
            visit({"the rows in the table token_row" + of, digest_in(sequences, 4), digest_of_rows(tokens),
                   number, false});
        }
    }
    Statement chunks = database.prepare(
        "SELECT s.number, g.name, c.first_token, c.data, c.crc32 FROM sequence s CROSS JOIN chunk c ON "
        "c.sequence = s.id JOIN signal g ON g.id = c.signal WHERE s.run = ?");
    chunks.bind(1, run);
    while (chunks.step()) {
        visit({"the chunk from token " + std::to_string(chunks.integer(2)) + " of signal " +
                   printable(chunks.text(1), 60) + " of sequence " + std::to_string(chunks.integer(0)),
               digest_in(chunks, 4), crc32_of(chunks.blob(3)), chunks.integer(0), true});
    }
}

void require_recorded(const std::filesystem::path& path, const std::vector<std::int64_t>& runs,
                      const ProgressSink& progress, const std::stop_token& stop) {
    if (const std::vector<std::filesystem::path> shards = find_shards(path); !shards.empty()) {
        for (const std::filesystem::path& shard : shards) {
            require_recorded(shard, {}, progress, stop); // all runs of the shard
        }
        return;
    }
    const std::unique_ptr<FileTrace> trace = FileTrace::open(path);
    const std::shared_ptr<const void> snapshot = trace->pin_snapshot();
    try {
        Statement named = trace->database().prepare(
            "SELECT id, name, (SELECT count(*) FROM sequence WHERE run = run.id) FROM run ORDER BY id");
        while (named.step()) {
            if (!runs.empty() && std::find(runs.begin(), runs.end(), named.integer(0)) == runs.end()) {
                continue;
            }
            const std::string name = printable(named.text(1), 60);
            // Each sequence counts twice: for its text and tokens, and for its signals.
            Progress said{"checking " + path.filename().string(), 0, 2 * named.integer(2), "parts"};
            each_digest(trace->database(), named.integer(0), [&](const DigestedPart& part) {
                if (part.due && *part.due != part.found) {
                    throw InputError(ErrorId::trace_damaged, path,
                                     part.name + " of run " + name + " as recorded",
                                     "other bytes (their CRC-32 is " + std::to_string(part.found) + ", not " +
                                         std::to_string(*part.due) + ")",
                                     take_again);
                }
                throw_if_stopped(stop);
                const std::int64_t done = part.sequence + (part.is_chunk ? said.total / 2 : 0);
                if (progress && part.sequence >= 0 && done != said.done) {
                    said.done = done;
                    progress(said);
                }
            });
        }
    } catch (const SqliteFailure& failure) {
        throw_read_failure(path, failure);
    }
}

} // namespace ponderscope
