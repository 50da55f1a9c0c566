// SPDX-License-Identifier: GPL-3.0-or-later
// Whether the bytes of a run are those that were recorded.
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/trace/check.h"
#include "core/trace/database.h"
#include "core/trace/digests.h"
#include "core/trace/schema.h"
#include "core/trace/shard.h"

namespace ponderscope {
namespace {

/// The CRC-32 of the rows of a sequence, from \p rows of its columns from id to flops.
std::uint32_t digest_of_rows(Statement& rows) {
    RowDigest digest;
    while (rows.step()) {
        for (const int column : {0, 1, 2}) {
            digest.add(rows.integer(column));
        }
        for (const int column : {3, 4, 5}) {
            digest.add(rows.real(column));
        }
        for (const int column : {6, 7, 8}) {
            digest.add(rows.integer(column));
        }
    }
    rows.reset();
    return digest.value();
}

std::uint32_t digest_of_pieces(Statement& rows) {
    std::uint32_t crc = 0;
    while (rows.step()) {
        crc = crc32_of(rows.blob(0), crc);
    }
    rows.reset();
    return crc;
}

class Recorded {
public:
    Recorded(Database& database, const std::filesystem::path& path, std::int64_t run,
             const ProgressSink& progress, const std::stop_token& stop)
        : database_(database), path_(path), run_(run), progress_(progress), stop_(stop) {}

    void require() {
        Statement named =
            database_.prepare("SELECT name, record_level = 'scalars', (SELECT count(*) FROM sequence "
                              "WHERE run = run.id) FROM run WHERE id = ?");
        named.bind(1, run_);
        if (!named.step()) {
            return;
        }
        name_ = printable(named.text(0), 60);
        const bool packed = named.integer(1) == 1; // the array that they are packed in has its own
        said_.total = 2 * named.integer(2);        // gone through for texts and tokens, and for signals
        require_words();
        require_sequences(packed);
        require_chunks();
    }

private:
    void compare(const std::string& what, std::int64_t due, std::uint32_t found) const {
        if (due != found) {
            throw InputError(path_, what + " of run " + name_ + " as recorded",
                             "other bytes (their CRC-32 is " + std::to_string(found) + ", not " +
                                 std::to_string(due) + ")",
                             "the file is damaged; take it from its source again, or record it again");
        }
        if (stop_.stop_requested()) {
            throw Cancelled();
        }
    }

    void require_words() {
        Statement words =
            database_.prepare("SELECT v.id, v.bytes, v.crc32 FROM run r JOIN vocabulary v ON v.tokenizer = "
                              "r.tokenizer WHERE r.id = ? AND v.crc32 IS NOT NULL");
        words.bind(1, run_);
        while (words.step()) {
            compare("token id " + std::to_string(words.integer(0)) + " in the table vocabulary",
                    words.integer(2), crc32_of(words.blob(1)));
        }
    }

    void require_sequences(bool packed) {
        Statement pieces =
            database_.prepare("SELECT bytes FROM text WHERE row >= ? AND row < ? ORDER BY row");
        Statement tokens = database_.prepare(
            "SELECT id, text_begin, text_end, nll, entropy, max_probability, rank, steps, flops FROM "
            "token_row WHERE row >= ? AND row < ? ORDER BY row");
        Statement sequences = database_.prepare(
            "SELECT id, number, text_bytes, text_crc32, tokens_crc32 FROM sequence WHERE run = ?");
        sequences.bind(1, run_);
        while (sequences.step()) {
            say(sequences.integer(1));
            const std::int64_t first = sequences.integer(0) << schema::position_bits;
            const std::int64_t last = (sequences.integer(0) + 1) << schema::position_bits;
            const std::string of = " of sequence " + std::to_string(sequences.integer(1));
            if (!sequences.is_null(3) && sequences.integer(2) > 0) {
                pieces.bind(1, first).bind(2, last);
                compare("the text" + of, sequences.integer(3), digest_of_pieces(pieces));
            }
            if (!sequences.is_null(4) && !packed) {
                tokens.bind(1, first).bind(2, last);
                compare("the rows in the table token_row" + of, sequences.integer(4), digest_of_rows(tokens));
            }
        }
    }

    void require_chunks() {
        Statement chunks = database_.prepare(
            "SELECT s.number, g.name, c.first_token, c.data, c.crc32 FROM sequence s CROSS JOIN chunk c ON "
            "c.sequence = s.id JOIN signal g ON g.id = c.signal WHERE s.run = ? AND c.crc32 IS NOT NULL");
        chunks.bind(1, run_);
        while (chunks.step()) {
            say(said_.total / 2 + chunks.integer(0));
            compare("the chunk from token " + std::to_string(chunks.integer(2)) + " of signal " +
                        printable(chunks.text(1), 60) + " of sequence " + std::to_string(chunks.integer(0)),
                    chunks.integer(4), crc32_of(chunks.blob(3)));
        }
    }

    void say(std::int64_t done) {
        if (progress_ && done != said_.done) {
            said_.done = done;
            progress_(said_);
        }
    }

    Database& database_;
    const std::filesystem::path& path_;
    std::int64_t run_;
    const ProgressSink& progress_;
    const std::stop_token& stop_;
    Progress said_{"checking " + path_.filename().string(), 0, 0, "parts"};
    std::string name_;
};

} // namespace

void require_recorded(const std::filesystem::path& path, const std::vector<std::int64_t>& runs,
                      const ProgressSink& progress, const std::stop_token& stop) {
    if (const std::vector<std::filesystem::path> shards = find_shards(path); !shards.empty()) {
        for (const std::filesystem::path& shard : shards) {
            require_recorded(shard, {}, progress, stop); // their runs have other numbers
        }
        return;
    }
    check_trace_header(path);
    const auto attempt = [&](Database::Access access) {
        Database database(path, access);
        database.execute("PRAGMA query_only=ON; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0");
        const ReadTransaction transaction(database);
        check_trace_tables(database, path);
        std::vector<std::int64_t> wanted = runs;
        if (runs.empty()) {
            Statement all = database.prepare("SELECT id FROM run ORDER BY id");
            while (all.step()) {
                wanted.push_back(all.integer(0));
            }
        }
        for (const std::int64_t run : wanted) {
            Recorded(database, path, run, progress, stop).require();
        }
    };
    try {
        try {
            attempt(Database::Access::read);
        } catch (const SqliteFailure& failure) {
            if (!failure.lacks_helper_files()) {
                throw;
            }
            attempt(Database::Access::read_immutable);
        }
    } catch (const SqliteFailure& failure) {
        if (failure.is_damage()) {
            throw InputError(path, "a sound trace", std::string("a damaged one (") + failure.what() + ")",
                             "take it from its source again, or record it again");
        }
        throw EnvironmentError(path.string() + ": cannot be read (" + failure.what() +
                               "); check the permissions of the file and of its folder, and the disk.");
    }
}

} // namespace ponderscope
