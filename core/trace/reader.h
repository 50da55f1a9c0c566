// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
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

class FileTrace;

/// Reads an untrusted trace: read-only, defensive, trusted_schema off, sizes checked before use. open() reads
/// only the header and the schema. Reading a damaged part throws InputError; other parts stay readable.
/// EnvironmentError: the system could not read. Traces on read-only media and traces that are being recorded
/// can be read.
///
/// The shards that several processes recorded (shard.h) open as one trace. Their path is a folder, a pattern,
/// or the name of the whole trace. The shards of a run appear as one run. Sequences after a missing or
/// unfinished sequence are left out.
///
/// One thread at a time. Open one reader for each thread. Opening is cheap.
class TraceReader {
public:
    /// InputError: not a trace, another kind of SQLite file, or another version.
    static TraceReader open(const std::filesystem::path& path);
    /// Opens shards from a list. \p name replaces the list in path() and in messages. InputError: a shard is
    /// missing, repeated or of another run, or a file is not a shard.
    static TraceReader open_shards(const std::vector<std::filesystem::path>& files,
                                   const std::filesystem::path& name);
    explicit TraceReader(std::unique_ptr<const FileTrace> file);
    ~TraceReader();
    TraceReader(TraceReader&&) noexcept;
    TraceReader& operator=(TraceReader&&) noexcept;

    /// A new reader of the same files, for another thread.
    [[nodiscard]] TraceReader another() const;

    /// The name of a run in messages: "/FOLDER/FILE.ponder#NAME". The short form omits the folder.
    [[nodiscard]] std::string name_of(const RunInfo& run) const { return path().string() + "#" + run.name; }
    [[nodiscard]] std::string short_name_of(const RunInfo& run) const {
        return path().filename().string() + "#" + run.name;
    }

    [[nodiscard]] const std::filesystem::path& path() const { return name_; }
    [[nodiscard]] std::vector<std::filesystem::path> files() const; ///< the trace, or its shards
    /// While the returned object lives, all reads see one snapshot of the trace, and repeated reads are
    /// cheaper. The reader must outlive the object.
    [[nodiscard]] std::shared_ptr<const void> pin_snapshot() const;

    /// These functions read the file at each call, so callers can follow a growing trace.
    [[nodiscard]] std::vector<RunInfo> runs() const;
    [[nodiscard]] std::vector<SequenceInfo> sequences(std::int64_t run) const;
    [[nodiscard]] std::vector<SignalInfo> signal_infos(std::int64_t run) const;
    /// The part of the run that this file holds. No value: the run is not in the table `shard`. Shards that
    /// are opened together count as the whole run (rank 0 of 1).
    [[nodiscard]] std::optional<ShardInfo> shard(std::int64_t run) const;
    /// The labels that were recorded with the texts, each with its sequence's number, in text order.
    [[nodiscard]] std::vector<std::pair<std::int64_t, TextLabel>> labels(std::int64_t run) const;

    /// Trainings of models with their curves, read from the file at each call. \p training: TrainingInfo::id.
    /// Shards have no trainings, because one process records a training.
    [[nodiscard]] std::vector<TrainingInfo> trainings() const;
    [[nodiscard]] std::vector<TrainingQuantity> training_quantities(std::int64_t training) const;
    /// Sorted by quantity and place (index on the quantity's axis).
    [[nodiscard]] std::vector<TrainingCurve> training_curves(std::int64_t training) const;

    /// Tokens [begin, end) of a sequence. If \p end is negative or too large, up to the last token. Spans lie
    /// inside the text. InputError: unknown run or sequence.
    [[nodiscard]] TokenColumns tokens(std::int64_t run, std::int64_t sequence, std::int64_t begin = 0,
                                      std::int64_t end = -1) const;
    /// The signal over tokens [begin, end), joined from its chunks. No value: the run or the sequence has no
    /// such signal. Reads only the bytes of these tokens.
    [[nodiscard]] std::optional<SignalChunk> signal(std::int64_t run, std::int64_t sequence,
                                                    const std::string& name, std::int64_t begin = 0,
                                                    std::int64_t end = -1) const;
    /// The text of a sequence; empty if only ids were recorded.
    [[nodiscard]] std::string text(std::int64_t run, std::int64_t sequence) const;
    /// The bytes of a token id, which may be a candidate. Empty if the trace lacks this id.
    [[nodiscard]] std::string token_bytes(std::int64_t run, std::int32_t id) const;
    /// All token bytes of the run, by id.
    [[nodiscard]] std::vector<std::pair<std::int32_t, std::string>> vocabulary(std::int64_t run) const;
    [[nodiscard]] std::vector<FaultInfo> faults(std::int64_t run) const; ///< in chronological order
    /// Notices about how the file was opened: "…-wal cannot be read here; its content is missing".
    [[nodiscard]] const Notices& notices() const { return notices_; }

private:
    struct Part;
    struct Place;
    struct JoinedRun;
    TraceReader(std::vector<std::unique_ptr<const FileTrace>> shards, std::filesystem::path name);
    [[nodiscard]] const JoinedRun& joined(std::int64_t run) const;
    [[nodiscard]] const JoinedRun& index_of(const JoinedRun& run) const;
    void make_index(const JoinedRun& run) const;
    [[nodiscard]] std::vector<Part> parts_of(std::int64_t run) const;
    [[nodiscard]] Place place_of(std::int64_t run, std::int64_t sequence) const;

    std::filesystem::path name_;
    Notices notices_;
    std::vector<std::unique_ptr<const FileTrace>> files_;
    std::vector<std::unique_ptr<JoinedRun>> joined_; ///< runs of shards; empty for a single file
};

/// Values of a chunk of any dtype (f16, bf16, f32, f64, integers) as floats.
std::vector<float> to_floats(const SignalChunk& chunk);
/// Values of a chunk of any dtype as doubles; f64 loses no digits.
std::vector<double> to_doubles(const SignalChunk& chunk);
/// Values of an integer chunk. InputError for a float dtype.
std::vector<std::int64_t> to_integers(const SignalChunk& chunk);

/// Splits "TRACE.ponder#RUN" at the first '#' after the name of an existing file. Without such a file: at the
/// first '#' after ".ponder", else at the last '#'. `run` is empty without '#', or if \p text is the name of
/// an existing file.
struct RunReference {
    std::filesystem::path trace;
    std::string run;
};
RunReference parse_run_reference(const std::string& text);
/// The run with this name or, if there is none, this id. An empty \p name means the only run that is not a
/// rerun (`policy --rerun`). InputError lists the runs.
RunInfo find_run(const TraceReader& reader, const std::string& name);
/// The run with this id. (find_run() would prefer a run whose name is this number.) InputError: no such run.
RunInfo run_by_id(const TraceReader& reader, std::int64_t id);

} // namespace ponderscope
