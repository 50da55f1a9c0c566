// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/base/notice.h"
#include "core/trace/database.h"
#include "core/trace/records.h"
#include "core/trace/schema.h"
#include "core/trace/shard.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Calls \p use(access) with `read`. If SQLite cannot create -shm, calls \p use with `read_immutable`. This
/// is safe: without -shm, other processes cannot write the trace either.
template <class Use>
auto with_read_access(const Use& use) {
    try {
        return use(Database::Access::read);
    } catch (const SqliteFailure& failure) {
        if (!failure.lacks_helper_files()) {
            throw;
        }
    }
    return use(Database::Access::read_immutable);
}

/// One trace file, with the functions of TraceReader. Each function reads in the caller's transaction, if
/// there is one, or begins its own.
class FileTrace {
public:
    /// Throws the errors of TraceReader::open.
    static std::unique_ptr<FileTrace> open(const std::filesystem::path& path);
    FileTrace(std::filesystem::path path, Database::Access access);

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::shared_ptr<const void> pin_snapshot() const;
    [[nodiscard]] std::vector<RunInfo> runs() const;
    [[nodiscard]] std::vector<SequenceInfo> sequences(std::int64_t run) const;
    [[nodiscard]] std::vector<SignalInfo> signal_infos(std::int64_t run) const;
    [[nodiscard]] std::optional<ShardInfo> shard(std::int64_t run) const;
    [[nodiscard]] std::vector<std::pair<std::int64_t, TextLabel>> labels(std::int64_t run) const;
    [[nodiscard]] std::vector<TrainingInfo> trainings() const;
    [[nodiscard]] std::vector<TrainingQuantity> training_quantities(std::int64_t training) const;
    [[nodiscard]] std::vector<TrainingCurve> training_curves(std::int64_t training) const;
    [[nodiscard]] TokenColumns tokens(std::int64_t run, std::int64_t sequence, std::int64_t begin,
                                      std::int64_t end) const;
    [[nodiscard]] std::optional<SignalChunk> signal(std::int64_t run, std::int64_t sequence,
                                                    const std::string& name, std::int64_t begin,
                                                    std::int64_t end) const;
    [[nodiscard]] std::string text(std::int64_t run, std::int64_t sequence) const;
    [[nodiscard]] std::string token_bytes(std::int64_t run, std::int32_t id) const;
    [[nodiscard]] std::vector<std::pair<std::int32_t, std::string>> vocabulary(std::int64_t run) const;
    [[nodiscard]] std::vector<FaultInfo> faults(std::int64_t run) const;
    [[nodiscard]] const Notices& notices() const { return notices_; }

    [[nodiscard]] Database& database() const { return database_; }
    /// runs() without check_run().
    [[nodiscard]] std::vector<RunInfo> unchecked_runs() const;
    void check_run(const RunInfo& run) const; ///< InputError: impossible counts

private:
    /// A chunk without its values.
    struct ChunkRow {
        std::int64_t id = 0;
        std::int64_t first = 0;
        std::int64_t tokens = 0;
        DType dtype = DType::f32;
        std::int64_t compressed_bytes = 0; ///< size in the file; 0: stored without compression
        std::vector<std::int64_t> shape;
        [[nodiscard]] std::int64_t token_bytes() const;
    };
    /// Whether the tokens of a run are stored in a signal.
    [[nodiscard]] bool is_packed(std::int64_t run) const;
    [[nodiscard]] SequenceInfo find_sequence(std::int64_t run, std::int64_t number) const;
    /// The chunks of a signal that overlap tokens [begin, until) of a sequence. Checks each chunk by itself
    /// and against the first chunk.
    [[nodiscard]] std::vector<ChunkRow> find_chunks(const SequenceInfo& place, std::int64_t id,
                                                    const SignalInfo& signal, std::int64_t begin,
                                                    std::int64_t until, const std::string& what) const;
    /// Reads the values of a chunk from byte \p skip on; decompresses them if needed.
    void read_values(const ChunkRow& chunk, std::size_t skip, std::span<std::byte> out,
                     const std::string& what) const;
    [[nodiscard]] TokenColumns packed_tokens(std::int64_t run, std::int64_t sequence, std::int64_t begin,
                                             std::int64_t end) const;
    template <class Row>
    std::vector<Row> read_rows(const char* table, const std::string& where) const;
    [[noreturn]] void damaged(const std::string& expected, const std::string& found) const {
        throw InputError(ErrorId::trace_damaged, path_, expected, found, take_again);
    }
    /// Bytes of the trace, including its write-ahead log. An upper bound for the size of any part.
    [[nodiscard]] std::int64_t file_bytes() const;
    /// Checks a count from the file before memory is allocated for it.
    std::int64_t plausible(std::int64_t count, std::int64_t least_bytes_each, const char* what) const;
    /// A token row of ten columns takes more than ten bytes in SQLite. Equal packed tokens take almost no
    /// space, so their count is not limited here. Reads check packed tokens.
    std::int64_t plausible_tokens(std::int64_t count, bool of_packed_run) const {
        return plausible(count, of_packed_run ? 0 : 10, "tokens");
    }

    /// Runs \p body in a read transaction and translates SQLite's errors.
    template <class Body>
    auto read(Body body) const {
        if (database_.in_transaction() && !pinned_) {
            return body(); // the caller handles errors
        }
        for (int attempt = 0;; ++attempt) {
            try {
                std::optional<ReadTransaction> transaction;
                if (!pinned_) {
                    transaction.emplace(database_);
                    known_bytes_ = 0;
                }
                return body();
            } catch (const SqliteFailure& failure) {
                constexpr int most = 5; // largest number of attempts for a growing trace on another machine
                if (pinned_ || !failure.is_moved() || attempt >= most) {
                    throw_read_failure(path_, failure);
                }
            }
        }
    }

    std::filesystem::path path_;
    mutable Database database_;
    Notices notices_;
    mutable bool pinned_ = false;          ///< a transaction outlives single calls (pin_snapshot)
    mutable std::int64_t known_bytes_ = 0; ///< size of the file; 0: not read in this transaction
};

} // namespace ponderscope
