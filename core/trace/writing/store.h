// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/files.h"
#include "core/trace/database.h"
#include "core/trace/digests.h"
#include "core/trace/records.h"
#include "core/trace/shard.h"
#include "core/trace/writing/chunk_buffer.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// The writing side of a trace file: rows, chunks, totals and transactions. Used by one thread at a time;
/// TraceWriter provides the thread. Throws SqliteFailure. The caller has checked the arguments.
class TraceStore {
public:
    /// Opens or creates a trace. InputError: the path is another kind of file. The caller holds the LockFile.
    /// \p compress: compress signals if this makes them smaller. \p temporary: the file is renamed later.
    explicit TraceStore(const std::filesystem::path& path, bool compress = false, bool temporary = false);

    /// Content of the file at opening.
    struct Contents {
        std::set<std::string> run_names;
        std::set<std::string> training_names;
        std::map<std::string, std::int64_t> tokenizers; ///< digest -> number
        std::int64_t last_run = 0;
        std::int64_t last_sequence = 0;
        std::int64_t last_tokenizer = 0;
        std::int64_t last_training = 0;
    };
    [[nodiscard]] const Contents& contents() const { return contents_; }

    void begin_run(const RunInfo& info, const std::vector<SignalInfo>& signals,
                   const std::optional<ShardInfo>& shard);
    /// Continues a run after its last finished sequence.
    struct Resumed {
        std::int64_t sequences = 0;
        std::int64_t last_sequence = 0; ///< largest id in the file
        std::int64_t tokenizer = 0;
        bool packed = false;
    };
    Resumed resume_run(std::int64_t run, const std::vector<SignalInfo>& signals);
    /// Uses title, group and joined_number of \p info; the store sets the rest.
    void begin_sequence(std::int64_t id, const SequenceInfo& info, const std::string& text);
    void append(const TokenColumns& tokens, const std::vector<std::pair<std::string, SignalChunk>>& signals);
    void end_sequence(bool complete);
    void put_labels(const std::vector<TextLabel>& labels);
    void put_text_digest(const std::string& digest);
    void put_vocabulary(std::int64_t tokenizer,
                        const std::vector<std::pair<std::int32_t, std::string>>& token_bytes);
    void put_fault(std::int64_t run, std::int64_t sequence, const std::string& time,
                   const std::string& message);
    /// Adds \p seconds and the sequences' totals to the totals of the run.
    void end_run(double seconds, bool complete);

    void begin_training(const TrainingInfo& info, const std::vector<TrainingQuantity>& quantities);
    void put_points(std::int64_t training, const TrainingMoment& moment,
                    const std::vector<TrainingValue>& values);
    void end_training(std::int64_t training, bool complete, const std::string& fault);
    /// Removes points after \p step.
    void cut_training(std::int64_t training, std::int64_t step);

    [[nodiscard]] bool dirty() const { return database_.in_transaction(); }
    /// Makes all data readable and safe against the death of this process. EnvironmentError if the file was
    /// moved or deleted (keep_file).
    void commit();
    [[nodiscard]] bool has_committed() const { return committed_; }
    /// Commits, and makes the trace a single file again unless another process reads it.
    void finish();
    /// Discards uncommitted changes.
    void roll_back() noexcept;
    /// After roll_back: stores why the run ended, if the disk allows.
    void end_with_fault(const std::string& message) noexcept;

private:
    struct SignalPlace {
        std::int64_t id = 0;
        SignalStorage storage = SignalStorage::plain;
    };
    void load_contents();
    /// Statements for \p table: insert adds a row; replace also replaces a row with the same key.
    [[nodiscard]] Statement& insert(const char* table);
    [[nodiscard]] Statement& replace(const char* table);
    void begin();
    void insert_tokens(const TokenColumns& tokens);
    void flush_tails();
    void write_sequence();
    /// Negative \p seconds: the time since take_up().
    void write_run(double seconds = -1);
    /// After a commit: creates the log again if its file was deleted. If the trace itself was moved, removed
    /// or replaced, saves its content elsewhere and throws an EnvironmentError that names the new path.
    void keep_file();
    [[noreturn]] void rescue();
    void remove_log(bool any); ///< \p any: also remove a log that is not in `log_`
    [[nodiscard]] std::array<FileId, 2> log_files() const; ///< -wal and -shm
    std::int64_t store_chunk(const SignalPlace& signal, const ChunkBuffer::Piece& piece);

    /// Makes \p run the current run, without sequences. Packs and compresses runs of record_level "scalars".
    void take_up(const RunInfo& run);
    [[nodiscard]] std::vector<SignalInfo> with_packed_tokens(std::vector<SignalInfo> signals) const;

    std::filesystem::path path_;
    FileId file_;                    ///< the file at opening
    std::array<FileId, 2> log_ = {}; ///< -wal and -shm as first seen
    bool logs_ = false;              ///< a write-ahead log exists
    bool committed_ = false;
    bool temporary_;
    bool always_compress_;
    bool compress_ = false; ///< for this run
    bool packed_ = false;   ///< the run's tokens are stored in a signal
    Database database_;
    Contents contents_;
    std::int64_t next_signal_ = 1;
    std::int64_t next_chunk_ = 1;

    RunInfo run_;                 ///< id 0 = none; totals count ended sequences; seconds: before take_up()
    std::int64_t newest_run_ = 0; ///< newest run that this writer began or resumed; 0 = none
    std::chrono::steady_clock::time_point run_began_;
    std::map<std::string, SignalPlace> signals_;

    SequenceInfo sequence_; ///< id 0 = none
    TotalsCounter sequence_totals_;
    RowDigest sequence_rows_;
    std::map<std::string, ChunkBuffer> buffers_;
};

/// The current time, ISO 8601, UTC: "2026-11-21T11:45:00Z".
std::string utc_now();

} // namespace ponderscope
