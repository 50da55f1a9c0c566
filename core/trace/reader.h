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

/// The interface of reading a trace: a file (trace_file.h) or a set of shards (shard_set.h). Calls are for
/// one thread at a time.
class TraceSource {
public:
    virtual ~TraceSource() = default;
    TraceSource() = default;
    TraceSource(const TraceSource&) = delete;
    TraceSource& operator=(const TraceSource&) = delete;

    [[nodiscard]] virtual const std::filesystem::path& path() const = 0;
    [[nodiscard]] virtual std::vector<std::filesystem::path> files() const = 0; ///< the trace, or its shards
    /// Until the returned object is destroyed, all reads see one snapshot of the trace, and repeated reads
    /// cost less. The reader outlives it.
    [[nodiscard]] virtual std::shared_ptr<const void> pin_snapshot() const = 0;

    /// Fresh from the file, so that a growing trace can be followed.
    [[nodiscard]] virtual std::vector<RunInfo> runs() const = 0;
    [[nodiscard]] virtual std::vector<SequenceInfo> sequences(std::int64_t run) const = 0;
    [[nodiscard]] virtual std::vector<SignalInfo> signal_infos(std::int64_t run) const = 0;
    /// Which part of the run this file holds; no value if no shard was recorded. Shards that are opened as
    /// one hold all of it.
    [[nodiscard]] virtual std::optional<ShardInfo> shard(std::int64_t run) const = 0;
    /// Classes that came with the texts: the sequence's number and the label, in the order of the texts.
    [[nodiscard]] virtual std::vector<std::pair<std::int64_t, TextLabel>> labels(std::int64_t run) const = 0;

    /// How models were trained, with their curves; fresh from the file. \p training: TrainingInfo::id.
    [[nodiscard]] virtual std::vector<TrainingInfo> trainings() const = 0;
    [[nodiscard]] virtual std::vector<TrainingQuantity> training_quantities(std::int64_t training) const = 0;
    /// In the order of quantity and place, each in the order of the steps.
    [[nodiscard]] virtual std::vector<TrainingCurve> training_curves(std::int64_t training) const = 0;

    /// Tokens [begin, end) of a sequence; end is cut to the existing tokens. Negative end: all. Spans are
    /// inside the text. An unknown run or sequence is an InputError.
    [[nodiscard]] virtual TokenColumns tokens(std::int64_t run, std::int64_t sequence, std::int64_t begin,
                                              std::int64_t end) const = 0;
    /// The signal over tokens [begin, end), stitched from its chunks; no value: the run or the sequence has
    /// no such signal. Only the bytes of these tokens are read.
    [[nodiscard]] virtual std::optional<SignalChunk> signal(std::int64_t run, std::int64_t sequence,
                                                            const std::string& name, std::int64_t begin,
                                                            std::int64_t end) const = 0;
    [[nodiscard]] virtual std::string text(std::int64_t run,
                                           std::int64_t sequence) const = 0; ///< empty for ids only
    /// Bytes of a token by id, for candidates; empty when the trace does not know it.
    [[nodiscard]] virtual std::string token_bytes(std::int64_t run, std::int32_t id) const = 0;
    /// All that token_bytes knows for the run, by id.
    [[nodiscard]] virtual std::vector<std::pair<std::int32_t, std::string>>
    vocabulary(std::int64_t run) const = 0;
    [[nodiscard]] virtual std::vector<FaultInfo>
    faults(std::int64_t run) const = 0; ///< in the order of their occurrence
    /// Sentences about how the file had to be opened: "…-wal cannot be read here; its content is missing".
    [[nodiscard]] virtual const std::vector<std::string>& notices() const = 0;
    /// Every page checked (PRAGMA quick_check). Slow on large files; call on request. Empty when sound, else
    /// a sentence.
    [[nodiscard]] virtual std::string check() const = 0;
};

/// Reads an untrusted trace: read-only, defensive, trusted_schema off, sizes checked before use. Opening
/// reads the header and the schema only. Reading a damaged part throws InputError; other parts stay readable.
/// EnvironmentError: the system could not read. A trace on media that cannot be written opens too; a trace
/// can be read at any time during its recording. The calls are those of TraceSource.
///
/// The shards that several processes recorded (shard.h) open as one trace: a folder, a pattern, or the name
/// that they were recorded to. Each set of shards is a run.
///
/// One thread at a time. Each thread that reads opens its own; that is cheap.
class TraceReader {
public:
    /// InputError: not a trace, another kind of SQLite file, another version.
    static TraceReader open(const std::filesystem::path& path);
    /// Opens shards from a list; \p name stands for them in path() and in messages. InputError: a shard is
    /// missing, listed twice or of another run.
    static TraceReader open_shards(const std::vector<std::filesystem::path>& files,
                                   const std::filesystem::path& name);
    explicit TraceReader(std::unique_ptr<const TraceSource> source) : source_(std::move(source)) {}

    /// Another reader of the same files, for another thread.
    [[nodiscard]] TraceReader another() const;

    /// The name of a run in messages: "/FOLDER/FILE.ponder#NAME"; the short form is without the folder.
    [[nodiscard]] std::string name_of(const RunInfo& run) const { return path().string() + "#" + run.name; }
    [[nodiscard]] std::string short_name_of(const RunInfo& run) const {
        return path().filename().string() + "#" + run.name;
    }

    [[nodiscard]] const std::filesystem::path& path() const { return source_->path(); }
    [[nodiscard]] std::vector<std::filesystem::path> files() const { return source_->files(); }
    [[nodiscard]] std::shared_ptr<const void> pin_snapshot() const { return source_->pin_snapshot(); }
    [[nodiscard]] std::vector<RunInfo> runs() const { return source_->runs(); }
    [[nodiscard]] auto sequences(std::int64_t run) const { return source_->sequences(run); }
    [[nodiscard]] auto signal_infos(std::int64_t run) const { return source_->signal_infos(run); }
    [[nodiscard]] auto shard(std::int64_t run) const { return source_->shard(run); }
    [[nodiscard]] auto labels(std::int64_t run) const { return source_->labels(run); }
    [[nodiscard]] std::vector<TrainingInfo> trainings() const { return source_->trainings(); }
    [[nodiscard]] auto training_quantities(std::int64_t training) const {
        return source_->training_quantities(training);
    }
    [[nodiscard]] auto training_curves(std::int64_t training) const {
        return source_->training_curves(training);
    }
    [[nodiscard]] TokenColumns tokens(std::int64_t run, std::int64_t sequence, std::int64_t begin = 0,
                                      std::int64_t end = -1) const {
        return source_->tokens(run, sequence, begin, end);
    }
    [[nodiscard]] std::optional<SignalChunk> signal(std::int64_t run, std::int64_t sequence,
                                                    const std::string& name, std::int64_t begin = 0,
                                                    std::int64_t end = -1) const {
        return source_->signal(run, sequence, name, begin, end);
    }
    [[nodiscard]] std::string text(std::int64_t run, std::int64_t sequence) const {
        return source_->text(run, sequence);
    }
    [[nodiscard]] std::string token_bytes(std::int64_t run, std::int32_t id) const {
        return source_->token_bytes(run, id);
    }
    [[nodiscard]] auto vocabulary(std::int64_t run) const { return source_->vocabulary(run); }
    [[nodiscard]] auto faults(std::int64_t run) const { return source_->faults(run); }
    [[nodiscard]] const std::vector<std::string>& notices() const { return source_->notices(); }
    [[nodiscard]] std::string check() const { return source_->check(); }

private:
    std::unique_ptr<const TraceSource> source_;
};

/// Values of a chunk of any dtype (f16, bf16, f32, f64, integers) as floats.
std::vector<float> to_floats(const SignalChunk& chunk);
/// The same without loss for f64.
std::vector<double> to_doubles(const SignalChunk& chunk);
/// Values of an integer chunk. InputError for a float dtype.
std::vector<std::int64_t> to_integers(const SignalChunk& chunk);

/// Splits "TRACE.ponder#RUN" at the first '#' behind a file that exists; if there is none, at the first '#'
/// after ".ponder", or at the last. The run is empty if there is no '#', or if a file has the whole name.
struct RunReference {
    std::filesystem::path trace;
    std::string run;
};
RunReference parse_run_reference(const std::string& text);
/// The run of that name or number. An empty \p name: the only run that is not a rerun of another one
/// (`policy --rerun`). InputError that lists the runs otherwise.
RunInfo find_run(const TraceReader& reader, const std::string& name);

} // namespace ponderscope
