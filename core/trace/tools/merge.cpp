// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/merge.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/trace/database.h"
#include "core/trace/reader.h"
#include "core/trace/schema.h"
#include "core/trace/shard.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/tools/check.h"
#include "core/trace/tools/run_edits.h"
#include "core/trace/writer.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <unistd.h>

namespace ponderscope {
namespace {

/// Tokens copied at once, so that long sequences do not need more memory.
constexpr std::int64_t tokens_at_once = 1 << 14;

/// Whether a run of a trace (0: any run) has values that were compressed on request. Runs of scalars and
/// signals that are always stored compressed do not count.
bool is_compressed(const std::filesystem::path& trace, std::int64_t run = 0) {
    try {
        Database database(trace, Database::Access::read);
        Statement found = database.prepare(
            "SELECT 1 FROM run r JOIN sequence s ON s.run = r.id JOIN chunk c ON c.sequence = s.id "
            "JOIN signal g ON g.id = c.signal WHERE r.record_level <> 'scalars' AND "
            "g.storage <> 'compressed' AND c.dtype LIKE '%+zstd' AND (?1 = 0 OR r.id = ?1) LIMIT 1");
        found.bind(1, run);
        return found.step();
    } catch (const std::exception&) {
        return false; // a later read reports the error
    }
}

/// A trace to merge. `runs` is fixed when the merge begins, because the trace may be growing.
struct Input {
    explicit Input(TraceReader trace)
        : reader(std::move(trace)),
          annotations(AnnotationReader::beside(reader.path())),
          runs(reader.runs()) {}
    TraceReader reader;
    std::optional<AnnotationReader> annotations;
    std::vector<RunInfo> runs;
    bool trainings = true; ///< copy its trainings, too
};

class Merge {
public:
    /// \p begun: set to the id of the newest run in the new trace.
    Merge(TraceWriter& writer, const ProgressSink& progress, const std::stop_token& stop,
          std::int64_t* begun = nullptr)
        : writer_(writer), progress_(progress), stop_(stop), begun_(begun) {}

    std::int64_t total = 0;

    void copy_trainings(const Input& input) {
        if (!input.trainings) {
            return;
        }
        const TraceReader& reader = input.reader;
        for (const TrainingInfo& training : reader.trainings()) {
            const std::int64_t id = writer_.begin_training(training, reader.training_quantities(training.id));
            // The writer takes all points of a moment together.
            std::map<std::int64_t, std::pair<TrainingMoment, std::vector<TrainingValue>>> moments;
            for (const TrainingCurve& curve : reader.training_curves(training.id)) {
                for (std::size_t i = 0; i < curve.size(); ++i) {
                    auto& [moment, values] = moments[curve.step[i]];
                    moment = {curve.step[i], curve.tokens[i], curve.seconds[i]};
                    values.push_back({curve.quantity, curve.place, curve.value[i]});
                }
            }
            for (auto& [step, points] : moments) {
                writer_.put_points(id, points.first, std::move(points.second));
            }
            writer_.end_training(id, training.complete, training.fault);
        }
    }

    void copy(const TraceReader& reader, RunInfo run) {
        const std::vector<SignalInfo> signals = reader.signal_infos(run.id);
        labels_.clear();
        for (auto& [sequence, label] : reader.labels(run.id)) {
            labels_[sequence].push_back(std::move(label));
        }
        const std::int64_t id = writer_.begin_run(run, signals, reader.shard(run.id));
        if (begun_ != nullptr) {
            *begun_ = id;
        }
        faults_.clear();
        for (FaultInfo& fault : reader.faults(run.id)) {
            faults_[fault.sequence].push_back(std::move(fault));
        }
        put_faults_of(-1);
        for (const SequenceInfo& sequence : reader.sequences(run.id)) {
            copy(reader, run, signals, sequence);
        }
        writer_.put_vocabulary(reader.vocabulary(run.id));
        if (run.complete) {
            writer_.end_run(run.seconds);
        } else {
            writer_.leave_run(run.seconds);
        }
    }

private:
    /// Copies the faults of a sequence; -1: of the run itself.
    void put_faults_of(std::int64_t sequence) {
        for (const FaultInfo& fault : faults_[sequence]) {
            writer_.put_fault(fault);
        }
    }

    void copy(const TraceReader& reader, const RunInfo& run, const std::vector<SignalInfo>& signals,
              const SequenceInfo& sequence) {
        writer_.begin_sequence(sequence.title, reader.text(run.id, sequence.number), sequence.group,
                               sequence.joined_number >= 0 ? std::optional(sequence.joined_number)
                                                           : std::nullopt);
        if (const auto labels = labels_.find(sequence.number); labels != labels_.end()) {
            writer_.put_labels(std::move(labels->second));
        }
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += tokens_at_once) {
            throw_if_stopped(stop_);
            const std::int64_t end = std::min(begin + tokens_at_once, sequence.tokens);
            std::vector<std::pair<std::string, SignalChunk>> chunks;
            for (const SignalInfo& signal : signals) {
                if (auto chunk = reader.signal(run.id, sequence.number, signal.name, begin, end)) {
                    chunks.emplace_back(signal.name, std::move(*chunk));
                }
            }
            writer_.append(reader.tokens(run.id, sequence.number, begin, end), std::move(chunks));
            done_ += end - begin;
            report_progress(progress_, {"merging", done_, total, "tokens"});
        }
        put_faults_of(sequence.number);
        if (sequence.complete) {
            writer_.end_sequence();
        }
    }

    TraceWriter& writer_;
    const ProgressSink& progress_;
    const std::stop_token& stop_;
    std::int64_t* begun_;
    std::int64_t done_ = 0;
    std::map<std::int64_t, std::vector<TextLabel>> labels_; ///< of the current run, by sequence
    std::map<std::int64_t, std::vector<FaultInfo>> faults_; ///< of the current run, by sequence
};

void copy_annotations_of(const std::vector<Input>& inputs, const std::filesystem::path& merged) {
    const std::vector<RunInfo> names = TraceReader::open(merged).runs(); // in the order of the inputs
    std::vector<AnnotationsToCopy> wanted;
    std::size_t at = 0;
    for (const Input& input : inputs) {
        for (const RunInfo& run : input.runs) {
            if (input.annotations) {
                wanted.push_back({&*input.annotations, run.name, names.at(at).name});
            }
            ++at;
        }
    }
    copy_annotations(merged, wanted);
}

/// Renames a finished file. InputError: the new name exists.
void publish(const std::filesystem::path& passing, const std::filesystem::path& output) {
    // link() fails if the name exists. rename() would replace a file that appeared meanwhile.
    if (::link(passing.c_str(), output.c_str()) == 0) {
        sync_folder_of(output);
        return;
    }
    if (errno == EEXIST) {
        throw InputError(ErrorId::file_exists, output, "an unused name",
                         "a file that appeared during the work", "choose another name");
    }
    // Some file systems have no hard links.
    std::error_code error;
    std::filesystem::rename(passing, output, error);
    if (error) {
        throw EnvironmentError(ErrorId::environment_failed, output.string() + ": cannot be written (" +
                                                                error.message() +
                                                                "); check the permissions of its folder.");
    }
    sync_folder_of(output);
}

/// InputError: the output exists. Called before any reading, so that the error comes at once.
void require_free(const std::filesystem::path& output) {
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(output, error))) {
        throw InputError(ErrorId::file_exists, output, "an unused name", "an existing file",
                         "choose another name or remove it");
    }
}

void merge(std::vector<Input> opened, const std::filesystem::path& output, bool compress,
           const ProgressSink& progress, const std::stop_token& stop) {
    std::error_code error;
    const std::filesystem::path beside = annotations_path(output);
    // The annotations file of shards already has the name for the whole trace, and stays valid.
    const bool stay = opened.size() == 1 && opened.front().annotations &&
                      std::filesystem::equivalent(opened.front().annotations->path(), beside, error);
    if (!stay && std::filesystem::exists(std::filesystem::symlink_status(beside, error))) {
        throw InputError(ErrorId::file_exists, beside, "an unused name", "annotations of a deleted trace",
                         "remove the annotations or choose another name");
    }
    const TemporaryDatabase passing(output.string() + ".merging-" + std::to_string(::getpid()));
    const TemporaryDatabase passing_annotations(annotations_path(passing.path));
    {
        TraceWriter writer(passing.path, {.compress = compress, .final_path = output});
        Merge copies(writer, progress, stop);
        for (const Input& input : opened) {
            for (const RunInfo& run : input.runs) {
                copies.total += run.tokens;
            }
        }
        for (const Input& input : opened) {
            copies.copy_trainings(input);
            for (const RunInfo& run : input.runs) {
                copies.copy(input.reader, run);
            }
        }
        writer.finish();
    }
    if (!stay) {
        copy_annotations_of(opened, passing.path);
    }
    // Annotations first, so that the trace never exists without them.
    const bool annotated = std::filesystem::exists(passing_annotations.path, error);
    if (annotated) {
        publish(passing_annotations.path, beside);
    }
    try {
        publish(passing.path, output);
    } catch (...) {
        if (annotated) {
            std::filesystem::remove(beside, error);
        }
        throw;
    }
}

} // namespace

void merge_runs(const std::vector<RunReference>& inputs, const std::filesystem::path& output,
                const ProgressSink& progress, const std::stop_token& stop) {
    if (inputs.empty()) {
        throw InputError(ErrorId::usage_missing, "expected traces to merge, found none; name at least one.");
    }
    require_free(output);
    std::vector<Input> opened;
    bool compress = false;
    for (const RunReference& input : inputs) {
        Input& one = opened.emplace_back(TraceReader::open(input.trace));
        std::vector<std::int64_t> only;
        if (!input.run.empty()) {
            one.runs = {find_run(one.reader, input.run)};
            one.trainings = false;
            only = {one.runs.front().id};
        }
        require_recorded(input.trace, only, progress, stop);
        const std::vector<std::filesystem::path> files = one.reader.files(); // a run's id differs in shards
        compress =
            compress || is_compressed(files.front(), only.empty() || files.size() > 1 ? 0 : only.front());
    }
    merge(std::move(opened), output, compress, progress, stop);
}

void join_shards(const std::vector<std::filesystem::path>& shards, const std::filesystem::path& output,
                 const ProgressSink& progress, const std::stop_token& stop) {
    require_free(output);
    std::vector<std::filesystem::path> files;
    for (const std::filesystem::path& named : shards) {
        const std::vector<std::filesystem::path> within = find_shards(named);
        files.insert(files.end(), within.begin(), within.end());
        if (within.empty()) {
            files.push_back(named);
        }
    }
    if (files.empty()) {
        throw InputError(ErrorId::usage_missing,
                         "expected shards to join, found none; name them, or their folder.");
    }
    std::vector<Input> opened;
    const std::optional<ShardName> name = parse_shard_name(files.front());
    opened.emplace_back(TraceReader::open_shards(
        files, name ? name->trace : files.front().parent_path() / output.filename()));
    const std::vector<RunInfo>& runs = opened.front().runs;
    if (runs.size() != 1) {
        throw InputError(ErrorId::shard_mixed, files.front(), "the shards of one run",
                         "shards of " + std::to_string(runs.size()) + " runs: " + runs[0].name + ", " +
                             runs[1].name + (runs.size() > 2 ? " and others" : ""),
                         "name the shards of one run, as in NAME.r*.ponder");
    }
    if (!runs.front().complete) {
        std::string unfinished;
        for (const std::filesystem::path& file : files) {
            if (!TraceReader::open(file).runs().front().complete) {
                unfinished += (unfinished.empty() ? "" : ", ") + file.filename().string();
            }
        }
        throw InputError(ErrorId::shard_missing, files.front().parent_path() / unfinished, "finished shards",
                         "partial shards", "finish their recording with --resume");
    }
    for (const std::filesystem::path& file : files) {
        require_recorded(file, {}, progress, stop);
    }
    merge(std::move(opened), output, is_compressed(files.front()), progress, stop);
}

std::string copy_run(const std::filesystem::path& from, std::int64_t run, const std::filesystem::path& to,
                     const ProgressSink& progress, const std::stop_token& stop) {
    std::error_code error;
    if (std::filesystem::equivalent(from, to, error)) {
        throw InputError(ErrorId::file_exists, to, "a trace other than the run's own trace", "the same trace",
                         "choose another name");
    }
    const TraceReader reader = TraceReader::open(from);
    const RunInfo info = run_by_id(reader, run);
    require_recorded(from, {run}, progress, stop);
    const bool fresh = !std::filesystem::exists(std::filesystem::symlink_status(to, error));
    std::int64_t begun = 0;
    try {
        {
            TraceWriter writer(to, {.compress = is_compressed(from, run)});
            Merge copies(writer, progress, stop, &begun);
            copies.total = info.tokens;
            copies.copy(reader, info);
            writer.finish();
        }
        return run_by_id(TraceReader::open(to), begun).name;
    } catch (...) {
        // Report the failure itself, whether or not cleaning up succeeds.
        if (fresh && begun > 0) {
            remove_database(to);
        } else if (begun > 0) {
            forget_run(to, begun);
        }
        throw;
    }
}

} // namespace ponderscope
