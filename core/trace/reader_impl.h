// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/trace/database.h"
#include "core/trace/reader.h"
#include "core/trace/schema.h"

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

inline constexpr const char* take_again =
    "the file is damaged; take it from its source again, or record it again";

/// Bytes of one token's values in an array of that shape.
inline std::int64_t bytes_a_token(DType dtype, std::span<const std::int64_t> shape) {
    auto bytes = static_cast<std::int64_t>(size_of(dtype));
    for (const std::int64_t length : shape.subspan(1)) {
        bytes *= length;
    }
    return bytes;
}

/// Ends what a statement that is kept was asked for.
struct StatementReset {
    Statement& statement;
    ~StatementReset() { statement.reset(); }
};

/// A chunk without its values.
struct ChunkRow {
    std::int64_t id = 0;
    std::int64_t first = 0;
    std::int64_t tokens = 0;
    DType dtype = DType::f32;
    std::int64_t compressed_bytes = 0; ///< in the file; 0: the values lie there as they are
    std::vector<std::int64_t> shape;
    [[nodiscard]] std::int64_t token_bytes() const { return bytes_a_token(dtype, shape); }
};

/// What the files that implement TraceReader share: the connection, and how its failures become sentences.
struct TraceReader::Impl {
    std::filesystem::path path;
    mutable Database database;
    std::vector<std::string> notices;
    mutable std::int64_t packed_run = 0; ///< the run that was asked about last
    mutable bool packed = false;
    mutable Statement tokens_statement;
    mutable Statement chunks_statement;
    mutable Statement sequence_statement;
    mutable Statement vocabulary_statement;
    mutable Statement signal_statement;
    mutable Statement data_statement;
    mutable bool held = false;            ///< a transaction outlives single calls (hold)
    mutable std::int64_t known_bytes = 0; ///< of the file; 0: not asked for in this transaction

    Impl(std::filesystem::path p, Database d) : path(std::move(p)), database(std::move(d)) {}

    struct SequenceRow {
        std::int64_t id;
        std::int64_t tokens;
        std::int64_t text_bytes;
    };

    [[noreturn]] void damaged(const std::string& expected, const std::string& found) const {
        throw InputError(path, expected, found, take_again);
    }

    /// A text that windows and tables show as a line, which a stranger's can be megabytes of.
    std::string line(const Statement& row, int column, const char* what) const {
        std::string text = row.text(column);
        constexpr std::size_t most = std::size_t{1} << 17; // as long as an argument can be
        if (text.size() > most) {
            damaged(std::string(what) + " of at most " + std::to_string(most) + " bytes",
                    std::to_string(text.size()));
        }
        return text;
    }

    /// Tokens of a sequence or a run. The smallest row that SQLite stores takes more than ten bytes with its
    /// ten columns. Equal tokens that are packed can take next to none; their values are checked when they
    /// are read.
    std::int64_t plausible_tokens(std::int64_t count, bool of_packed_run) const {
        return plausible(count, of_packed_run ? 0 : 10, "tokens");
    }

    /// Runs \p body inside a read transaction (that of the caller, where there is one) and turns what SQLite
    /// says into a sentence.
    template <class Body>
    auto read(Body body) const {
        if (database.in_transaction() && !held) {
            return body(); // what fails is met by the caller's
        }
        for (int attempt = 0;; ++attempt) {
            try {
                std::optional<ReadTransaction> transaction;
                if (!held) {
                    begin(transaction);
                }
                return body();
            } catch (const SqliteFailure& failure) {
                constexpr int most = 5; // times that a growing trace on another machine is begun again
                if (held || !failure.is_moved() || attempt >= most) {
                    rethrow(failure);
                }
            }
        }
    }
    void begin(std::optional<ReadTransaction>& transaction) const {
        transaction.emplace(database);
        known_bytes = 0;
    }
    [[noreturn]] void rethrow(const SqliteFailure& failure) const {
        if (failure.is_damage()) {
            damaged("a sound trace", std::string("a damaged one (") + failure.what() + ")");
        }
        throw EnvironmentError(path.string() + ": cannot be read (" + failure.what() +
                               "); check the permissions of the file and of its folder, and the disk.");
    }

    /// Bytes of the trace, its write-ahead log included: nothing inside can be larger.
    std::int64_t file_bytes() const {
        if (known_bytes == 0) {
            known_bytes = database.integer("PRAGMA page_count") * database.integer("PRAGMA page_size");
        }
        return known_bytes;
    }

    /// A count from the file that says how much is to be read, checked before anything is allocated for it.
    std::int64_t plausible(std::int64_t count, std::int64_t least_bytes_each, const char* what) const {
        if (count < 0 || (least_bytes_each > 0 && count > file_bytes() / least_bytes_each)) {
            damaged(std::string("a number of ") + what + " that fits into the file", std::to_string(count));
        }
        return count;
    }

    SequenceRow find_sequence(std::int64_t run, std::int64_t number) const;
    /// The chunks of a signal that hold tokens [begin, until) of a sequence, each checked by itself and
    /// against the first.
    std::vector<ChunkRow> find_chunks(const SequenceRow& place, std::int64_t signal,
                                      const nlohmann::json& axes, std::int64_t begin, std::int64_t until,
                                      const std::string& what) const;
    /// Values of a chunk from \p skip bytes on, expanded where they are compressed.
    void read_values(const ChunkRow& chunk, std::size_t skip, std::span<std::byte> out,
                     const std::string& what) const;
    /// Whether the tokens of a run lie in a signal.
    [[nodiscard]] bool is_packed(std::int64_t run) const;
    void open_statements();
};

} // namespace ponderscope
