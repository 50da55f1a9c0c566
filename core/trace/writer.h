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

/// Appends runs to a trace file. A separate thread has the only write connection; the calls below pass values
/// to it and return (they block only while more than `max_queued_bytes` wait). One writer a file. Calls come
/// from one thread.
///
/// A failure on the writer thread (disk full, no permission) is rethrown as EnvironmentError by the next call
/// or by finish(); everything that was flushed stays readable. Finished sequences survive kill -9, unfinished
/// ones lose at most half a second. While it writes, TRACE-wal, TRACE-shm and TRACE-lock lie beside the
/// trace; a killed writer leaves them, and they belong to it. A call that contradicts earlier calls (a gap
/// between tokens, another shape) is an InputError and changes nothing.
class TraceWriter {
public:
    struct Options {
        std::size_t max_queued_bytes = 256U << 20;
        bool compress = false; ///< values of signals by zstd, if that takes less (packed_values.h)
        bool append = true;    ///< add runs to an existing trace; false: an existing file is an InputError
        /// For a temporary file: its final name, for messages.
        std::filesystem::path final_path = {};
    };

    /// Creates or opens \p path. InputError: another kind of file, another version, a folder that does not
    /// exist.
    explicit TraceWriter(const std::filesystem::path& path);
    TraceWriter(const std::filesystem::path& path, const Options& options);
    ~TraceWriter(); ///< unfinished runs stay marked partial; never throws
    TraceWriter(const TraceWriter&) = delete;
    TraceWriter& operator=(const TraceWriter&) = delete;

    /// Starts a run; returns its id. A name that exists already gets " (2)" and so on. \p declared: what will
    /// be recorded; a declared signal may stay unused, and chunks have its dtype. A run that was not ended
    /// stays marked partial. `id`, totals and `seconds` of \p info are the writer's. A record_level of
    /// "scalars" packs the tokens themselves too (packed_values.h), and compresses. \p shard: how it is dealt
    /// out, if that is known.
    std::int64_t begin_run(RunInfo info, std::vector<SignalInfo> declared,
                           std::optional<ShardInfo> shard = std::nullopt);
    /// Continues a run that was left or cut off: finished sequences stay; an unfinished sequence and its
    /// faults are removed. \p declared: as in begin_run. Returns how many sequences are there: the next one
    /// gets that number. InputError: no such run in the trace.
    std::int64_t resume_run(std::int64_t run, std::vector<SignalInfo> declared);
    /// Starts the next sequence of the current run; returns its number, from 0. \p text may be empty (ids
    /// only). A sequence that was not ended stays marked partial. \p group: SequenceInfo::group. \p
    /// joined_number: SequenceInfo::joined_number.
    std::int64_t begin_sequence(std::string title, std::string text, std::string group = {},
                                std::optional<std::int64_t> joined_number = std::nullopt);
    /// The next tokens of the current sequence, with their signals: pairs of name and chunk; every chunk
    /// covers exactly these tokens. All appends of a sequence give the same signals, with the same types and
    /// shapes beyond the first axis. Without a text the spans may be left empty. Data is little-endian.
    void append(TokenColumns tokens, std::vector<std::pair<std::string, SignalChunk>> chunks);
    /// Classes of parts of the current sequence's text. They do not overlap, and labels of a later call are
    /// behind those of earlier calls.
    void put_labels(std::vector<TextLabel> labels);
    void end_sequence();
    /// The text of each token id in the run, so that a reader needs no tokenizer: candidates included. Call
    /// before end_run.
    void put_vocabulary(std::vector<std::pair<std::int32_t, std::string>> token_bytes);
    /// RunInfo::text_digest of the current run, if it is known only after the last text.
    void put_text_digest(std::string digest);
    /// A fault during the recording, one sentence, stored with the current run and sequence.
    void put_fault(std::string message);
    /// The same with a given time, for copies; `run` and `sequence` of \p fault are not used.
    void put_fault(const FaultInfo& fault);
    /// Ends the run as complete. A sequence that was not ended stays marked partial. \p seconds: wall time of
    /// the run.
    void end_run(double seconds);
    /// Ends the run as partial: cancelled, or cut off by a fault. Without a run: nothing. Negative seconds:
    /// since begin_run.
    void leave_run(double seconds = -1);

    // Trainings are independent of runs: their calls may come at any time, also within a run. Each takes
    // effect whole or not at all.
    /// Starts a training; returns its id. A name that exists already gets " (2)" and so on. `id`, `step`,
    /// `tokens`, `seconds`, `complete` and `fault` of \p info are the writer's.
    std::int64_t begin_training(TrainingInfo info, std::vector<TrainingQuantity> quantities);
    /// Values at one moment, readable by others at once; an existing value is replaced.
    void put_points(std::int64_t training, const TrainingMoment& moment, std::vector<TrainingValue> values);
    /// A training that was not ended stays marked as not complete. \p fault: what ended it before its time.
    void end_training(std::int64_t training, bool complete, std::string fault = {});
    /// Removes the points and recorded runs of a training after \p step, so that it can continue from there.
    /// No program may write the trace. InputError, EnvironmentError.
    static void forget_after(const std::filesystem::path& path, std::int64_t training, std::int64_t step);

    /// After the recording process died: adds \p message as a fault to the newest run, if that is partial.
    /// False: no such run, or another process writes.
    static bool note_death(const std::filesystem::path& path, const std::string& message);

    /// Waits until all is on disk; a run that was not ended stays marked partial. Leaves a single file,
    /// unless another process reads it (then -wal stays beside it). Throws the error of the writer thread.
    /// Nothing can be added afterwards.
    void finish();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ponderscope
