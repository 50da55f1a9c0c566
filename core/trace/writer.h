// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "core/trace/shard.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Appends runs to a trace file. The writer thread has the only write connection. The functions below queue
/// values for this thread and return. They wait while more than 256 MiB are queued. A file has at most one
/// writer, and only one thread may call it.
///
/// A failure on the writer thread (disk full, no permission) is thrown as EnvironmentError by the next call
/// or by finish(). Committed data stays readable. Finished sequences survive kill -9. An unfinished sequence
/// loses at most its last half second. While the writer works, TRACE-wal, TRACE-shm and TRACE-lock are beside
/// the trace. A killed writer leaves them there, and they are part of the trace. A call that contradicts
/// earlier calls (a gap between tokens, another shape) throws InputError and has no effect.
class TraceWriter {
public:
    struct Options {
        bool compress = false; ///< compress signals by zstd if this makes them smaller (packed_values.h)
        /// For messages: the name that the new file gets later.
        std::filesystem::path final_path = {};
    };

    /// Creates or opens \p path. InputError: another kind of file, another version, or a missing folder.
    explicit TraceWriter(const std::filesystem::path& path);
    TraceWriter(const std::filesystem::path& path, const Options& options);
    ~TraceWriter(); ///< unfinished runs stay marked partial; never throws
    TraceWriter(const TraceWriter&) = delete;
    TraceWriter& operator=(const TraceWriter&) = delete;

    /// Starts a run and returns its id. An existing name gets " (2)" and so on. \p declared: the signals of
    /// the run. A declared signal may remain unused. All chunks of a signal have the declared dtype. A run
    /// that is not ended stays marked partial. The writer sets `id`, totals and `seconds` of \p info. With
    /// record_level "scalars", packs the tokens (packed_values.h) and compresses all signals. \p shard: the
    /// run's shard, if known.
    std::int64_t begin_run(RunInfo info, std::vector<SignalInfo> declared,
                           std::optional<ShardInfo> shard = std::nullopt);
    /// Continues a partial run. Keeps finished sequences. Removes an unfinished sequence and its faults.
    /// \p declared: as in begin_run. Returns the number of the next sequence, which equals the count
    /// of existing sequences. InputError: the trace has no such run.
    std::int64_t resume_run(std::int64_t run, std::vector<SignalInfo> declared);
    /// Starts the next sequence of the current run and returns its number, from 0. \p text may be empty (ids
    /// only). A sequence that is not ended stays marked partial. \p group: SequenceInfo::group. \p
    /// joined_number: SequenceInfo::joined_number.
    std::int64_t begin_sequence(std::string title, std::string text, std::string group = {},
                                std::optional<std::int64_t> joined_number = std::nullopt);
    /// Adds the next tokens of the current sequence with their signals, as pairs of name and chunk. Every
    /// chunk covers exactly these tokens. All calls for a sequence have the same signals, with the same types
    /// and the same shapes except for the first axis. Without a text, `begin` and `end` of \p tokens may be
    /// empty. Data is little-endian.
    void append(TokenColumns tokens, std::vector<std::pair<std::string, SignalChunk>> chunks);
    /// Labels parts of the current sequence's text with classes. Across all calls, parts are in text order
    /// without overlap.
    void put_labels(std::vector<TextLabel> labels);
    void end_sequence();
    /// Stores the bytes of each token id in the run, including candidates, so that a reader needs no
    /// tokenizer. Call it before end_run.
    void put_vocabulary(std::vector<std::pair<std::int32_t, std::string>> token_bytes);
    /// Sets RunInfo::text_digest of the current run, if it is known only after the last text.
    void put_text_digest(std::string digest);
    /// Stores a fault of the recording, one sentence, with the current run and sequence.
    void put_fault(std::string message);
    /// Stores message and time of \p fault with the current run and sequence, for copies of runs.
    void put_fault(const FaultInfo& fault);
    /// Ends the run as complete. A sequence that was not ended stays marked partial. \p seconds: wall time of
    /// the run.
    void end_run(double seconds);
    /// Ends the run as partial, after a cancellation or a fault. Does nothing without a run. Negative \p
    /// seconds: the time since begin_run.
    void leave_run(double seconds = -1);

    // Trainings are independent of runs: these functions may be called at any time, also within a run. Each
    // call takes effect whole or not at all.
    /// Starts a training and returns its id. An existing name gets " (2)" and so on. The writer sets `id`,
    /// `step`, `tokens`, `seconds`, `complete` and `fault` of \p info.
    std::int64_t begin_training(TrainingInfo info, std::vector<TrainingQuantity> quantities);
    /// Stores the values of one point of a training. Other processes can read them at once. Replaces existing
    /// values.
    void put_points(std::int64_t training, const TrainingMoment& moment, std::vector<TrainingValue> values);
    /// Ends a training. A training that is not ended stays marked as incomplete. \p fault: why it ended
    /// early.
    void end_training(std::int64_t training, bool complete, std::string fault = {});
    /// Removes the points of a training after \p step, so that the training can continue at \p step. No other
    /// program may be writing the trace. InputError, EnvironmentError.
    static void forget_after(const std::filesystem::path& path, std::int64_t training, std::int64_t step);

    /// After the recording process died: adds \p message as a fault to the newest run, if this run is
    /// partial. False: the newest run is complete, the trace has no run, or another process is writing.
    static bool note_death(const std::filesystem::path& path, const std::string& message);

    /// Waits until all data is on disk. A run that was not ended stays marked partial. Leaves a single file,
    /// unless another process reads it (then -wal stays beside it). Throws errors of the writer thread. No
    /// data can be added afterwards.
    void finish();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ponderscope
