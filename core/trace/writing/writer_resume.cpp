// SPDX-License-Identifier: GPL-3.0-or-later
// TraceWriter: trainings, checks against other shards, and traces that an earlier process left unfinished.
#include "core/trace/reader.h"
#include "core/trace/schema.h"
#include "core/trace/writing/writer_impl.h"

#include <future>
#include <memory>

namespace ponderscope {

EnvironmentError TraceWriter::Impl::failed(const SqliteFailure& why, bool kept) const {
    return options.final_path.empty() ? write_failure(path, why, kept)
                                      : write_failure(options.final_path, why, false);
}

void TraceWriter::Impl::check_siblings(const Recording& own, const ShardInfo& shard) const {
    const std::optional<ShardName> name = parse_shard_name(path);
    if (shard.world < 2 || !name) {
        return;
    }
    for (std::int64_t rank = 0; rank < shard.world; ++rank) {
        const std::filesystem::path beside = shard_path(name->trace, rank, shard.world);
        std::error_code error;
        if (rank == shard.rank || std::filesystem::file_size(beside, error) == 0 || error) {
            continue;
        }
        const TraceReader reader = TraceReader::open(beside);
        const std::vector<RunInfo> runs = reader.runs();
        const std::optional<ShardInfo> there = runs.empty() ? std::nullopt : reader.shard(runs.front().id);
        if (!there) {
            continue; // its run has not begun yet
        }
        const std::string difference =
            difference_of_recordings({runs.front(), reader.signal_infos(runs.front().id), there->batch}, own);
        if (!difference.empty()) {
            throw InputError(ErrorId::shard_mixed, beside,
                             "a shard of the run that rank " + std::to_string(shard.rank) + " records",
                             "a shard of another run (" + difference + ")",
                             "start all processes with the same command, or remove the old shards");
        }
    }
}

std::int64_t TraceWriter::resume_run(std::int64_t run, std::vector<SignalInfo> declared) {
    Impl& impl = *impl_;
    leave_run(-1);
    if (run < 1 || run > impl.known.last_run) {
        impl.misuse("there is no run " + std::to_string(run) + " to go on with.");
    }
    std::map<std::string, SignalInfo> by_name = impl.by_name(declared);
    auto answer = std::make_shared<std::promise<TraceStore::Resumed>>(); // for a copyable std::function
    std::future<TraceStore::Resumed> resumed = answer->get_future();
    impl.push(QueuedCall::Commit::when_idle,
              [run, signals = std::move(declared), answer = std::move(answer)](TraceStore& to) {
                  answer->set_value(to.resume_run(run, signals));
              });
    TraceStore::Resumed found;
    try {
        found = resumed.get();
    } catch (const std::future_error&) { // the writer thread failed; `failure` has the reason
        impl.stop();
        std::rethrow_exception(impl.failure);
    }
    impl.run = run;
    impl.packed = found.packed;
    impl.tokenizer = found.tokenizer;
    impl.known.last_sequence = found.last_sequence;
    impl.sequences_in_run = found.sequences;
    impl.signals = std::move(by_name);
    return found.sequences;
}

void TraceWriter::forget_after(const std::filesystem::path& path, std::int64_t training, std::int64_t step) {
    check_trace_header(path);
    const std::filesystem::path target = real_path(path);
    const LockFile lock(target);
    try {
        TraceStore store(target);
        store.cut_training(training, step);
        store.finish();
    } catch (const SqliteFailure& refusal) {
        throw_write_failure(path, refusal);
    }
}

std::int64_t TraceWriter::begin_training(TrainingInfo info, std::vector<TrainingQuantity> quantities) {
    Impl& impl = *impl_;
    std::set<std::string> names;
    for (const TrainingQuantity& quantity : quantities) {
        if (!schema::is_name(quantity.name) || (!quantity.axis.empty() && !schema::is_name(quantity.axis))) {
            impl.misuse("quantity \"" + quantity.name +
                        "\" of a training needs a name, and an axis if any, of letters, digits and "
                        "underscores.");
        }
        if (!names.insert(quantity.name).second) {
            impl.misuse("quantity " + quantity.name + " of a training was announced twice.");
        }
    }
    info.id = impl.known.last_training + 1;
    info.name = Impl::unique_name(info.name.empty() ? "training" : info.name, impl.known.training_names);
    if (info.started.empty()) {
        info.started = utc_now();
    }
    const std::int64_t id = info.id;
    impl.push(QueuedCall::Commit::when_idle, [info = std::move(info), quantities = std::move(quantities)](
                                                 TraceStore& to) { to.begin_training(info, quantities); });
    return impl.known.last_training = id;
}

void TraceWriter::put_points(std::int64_t training, const TrainingMoment& moment,
                             std::vector<TrainingValue> values) {
    Impl& impl = *impl_;
    impl.need_training(training);
    for (const TrainingValue& value : values) {
        if (moment.step < 0 || moment.tokens < 0 || value.place < 0 || value.place >= max_training_places) {
            impl.misuse("a point of " + value.quantity + " lies at step " + std::to_string(moment.step) +
                        ", place " + std::to_string(value.place) + ", where none can be.");
        }
    }
    const std::size_t bytes = values.size() * sizeof(TrainingValue);
    impl.push(
        QueuedCall::Commit::when_idle,
        [training, moment, values = std::move(values)](TraceStore& to) {
            to.put_points(training, moment, values);
        },
        bytes);
}

void TraceWriter::end_training(std::int64_t training, bool complete, std::string fault) {
    Impl& impl = *impl_;
    impl.need_training(training);
    impl.push(QueuedCall::Commit::when_idle, [training, complete, fault = std::move(fault)](TraceStore& to) {
        to.end_training(training, complete, fault);
    });
}

bool TraceWriter::note_death(const std::filesystem::path& path, const std::string& message) {
    try {
        std::int64_t dead = 0;
        for (const RunInfo& run : TraceReader::open(path).runs()) {
            dead = run.complete ? 0 : run.id; // after the loop: the newest run
        }
        if (dead == 0) {
            return false;
        }
        const std::filesystem::path target = real_path(path);
        const LockFile lock(target); // throws if a writer still holds it
        TraceStore store(target);
        store.put_fault(dead, -1, utc_now(), message);
        store.finish();
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

} // namespace ponderscope
