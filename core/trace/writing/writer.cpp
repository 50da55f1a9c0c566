// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/writing/writer_impl.h"

#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/trace/packed_values.h"
#include "core/trace/reader.h"
#include "core/trace/rows.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <system_error>

namespace ponderscope {
namespace {

using Commit = QueuedCall::Commit;
using Clock = std::chrono::steady_clock;

constexpr std::size_t most_queued_bytes = 256U << 20;
/// The shortest time between commits while the queue is not empty (a commit writes whole pages). When the
/// queue becomes empty, the thread commits at once.
constexpr auto commit_interval = std::chrono::milliseconds(100);
/// Finished sequences are also committed after this many bytes: a disk can fill up within the interval, and a
/// failing commit loses its data.
constexpr std::size_t commit_bytes = std::size_t{1} << 20;
/// The time after which readers see new tokens of an unfinished sequence.
constexpr auto follow_interval = std::chrono::milliseconds(500);

} // namespace

void TraceWriter::Impl::open() {
    namespace fs = std::filesystem;
    if (remote::is_remote(path)) {
        throw InputError(ErrorId::trace_remote, path, "a trace on this machine",
                         "a trace on another machine, which is read-only",
                         "write to this machine, or run ponderscope on the other one");
    }
    std::error_code error;
    const fs::path absolute = fs::absolute(path);
    if (fs::is_directory(absolute, error)) {
        throw InputError(ErrorId::file_kind, path, "a file name for a trace", "a folder",
                         "give the name of a file in this folder");
    }
    const fs::path folder = absolute.parent_path();
    if (!fs::is_directory(folder, error)) {
        throw InputError(ErrorId::file_missing, path, "a folder " + folder.string(), "no such folder",
                         "create the folder or choose another one");
    }
    const bool exists = fs::exists(absolute, error);
    if (exists) {
        // An empty file is a reserved name, and counts as a new trace.
        const bool empty = fs::is_regular_file(absolute, error) && fs::file_size(absolute, error) == 0;
        if (!empty) {
            check_trace_header(path);
            if (!options.final_path.empty()) {
                throw InputError(ErrorId::file_exists, path, "an unused name", "a trace",
                                 "choose another name or append to it");
            }
        }
    }
    target = real_path(absolute); // all names of a file must share the lock
    lock.emplace(target);
    try {
        store.emplace(target, options.compress, !options.final_path.empty());
    } catch (const SqliteFailure& refusal) {
        if (!exists) {
            remove_database(target);
        }
        if (refusal.is_damage()) {
            throw_read_failure(path, refusal);
        }
        throw failed(refusal, exists);
    }
    made = !exists;
    file = FileId::of(target);
    known = store->contents();
    try {
        thread = std::thread([this] { work_off(); });
    } catch (const std::system_error& refusal) {
        store.reset();
        if (made) {
            remove_database(target);
        }
        throw EnvironmentError(ErrorId::environment_limit,
                               path.string() +
                                   ": cannot be written, because the system starts no new thread (" +
                                   refusal.code().message() +
                                   "); close other programs or raise the limits (ulimit -u, ulimit -v).");
    }
}

void TraceWriter::Impl::push(Commit commit, std::function<void(TraceStore&)> call, std::size_t bytes) {
    bytes += sizeof(QueuedCall);
    std::unique_lock guard(mutex);
    // A call that is larger than the whole limit waits until the queue is empty.
    room.wait(guard,
              [&] { return failure || queued_bytes == 0 || queued_bytes + bytes <= most_queued_bytes; });
    if (failure) {
        std::rethrow_exception(failure);
    }
    if (finished) {
        misuse("the trace was finished; nothing can be added.");
    }
    queued_bytes += bytes;
    queue.push_back({std::move(call), commit, bytes});
    work.notify_one();
}

/// The writer thread. Stores its exception for the caller. Earlier commits are safe.
void TraceWriter::Impl::work_off() {
    try {
        auto last_commit = Clock::now();
        bool ended = false; // a call with Commit::when_idle waits for a commit
        std::size_t uncommitted = 0;
        for (;;) {
            std::optional<QueuedCall> next;
            bool last = false;
            bool at_once = false;
            {
                std::unique_lock guard(mutex);
                if (queue.empty() && !ended) {
                    const auto woken = [&] { return closing || !queue.empty(); };
                    if (store->dirty()) {
                        work.wait_until(guard, last_commit + follow_interval, woken);
                    } else {
                        work.wait(guard, woken);
                    }
                }
                if (!queue.empty()) {
                    next.emplace(std::move(queue.front()));
                    queue.pop_front();
                }
                last = !next && closing;
            }
            if (next) {
                ended = ended || next->commit != Commit::later;
                at_once = next->commit == Commit::at_once;
                const std::size_t bytes = next->bytes;
                uncommitted += bytes;
                next->call(*store);
                next.reset();
                const std::lock_guard guard(mutex);
                queued_bytes -= bytes;
                room.notify_all();
            } else if (last) {
                store->finish();
                break;
            }
            const auto since = Clock::now() - last_commit;
            const bool idle = [&] {
                const std::lock_guard guard(mutex);
                return queue.empty();
            }();
            if (at_once || (ended && (idle || since >= commit_interval || uncommitted >= commit_bytes)) ||
                since >= follow_interval) {
                store->commit();
                ended = false;
                uncommitted = 0;
                last_commit = Clock::now();
            }
        }
    } catch (...) {
        std::exception_ptr caught = std::current_exception();
        try {
            try {
                throw;
            } catch (const SqliteFailure& sqlite) {
                nothing_kept = made && !store->has_committed();
                caught = std::make_exception_ptr(failed(sqlite, !nothing_kept));
            } catch (const std::bad_alloc&) {
                caught = std::make_exception_ptr(
                    EnvironmentError(ErrorId::environment_memory,
                                     path.string() + ": out of memory while writing; finished sequences are "
                                                     "kept. Close some programs and record the rest."));
            }
        } catch (...) {
            // Keep the exception: it is of another kind, or there is no memory for a message.
        }
        store->roll_back();
        try {
            std::rethrow_exception(caught);
        } catch (const std::exception& what) {
            try {
                // Uses the space that the roll-back freed. If even this fails, the run stays partial without
                // a reason.
                store->end_with_fault(std::string("The recording ended before its time: ") + what.what());
            } catch (const std::bad_alloc&) {
                // The run stays partial without a reason.
            }
        }
        const std::lock_guard guard(mutex);
        failure = caught;
        queue.clear();
        queued_bytes = 0;
        room.notify_all();
    }
    store.reset(); // the connection belongs to this thread
}

void TraceWriter::Impl::stop() noexcept {
    if (!thread.joinable()) {
        return;
    }
    {
        const std::lock_guard guard(mutex);
        closing = true;
        work.notify_one();
    }
    thread.join();
    // A new file without a run or training is removed.
    if (made && FileId::of(target) == file &&
        (discard || nothing_kept || (!finished && known.last_run == 0 && known.last_training == 0))) {
        remove_database(target);
    }
    lock.reset();
}

std::string TraceWriter::Impl::unique_name(const std::string& wanted, std::set<std::string>& taken) {
    const std::string base = wanted.empty() ? "run" : wanted;
    std::string name = base;
    for (int i = 2; !taken.insert(name).second; ++i) {
        name = base + " (" + std::to_string(i) + ")";
    }
    return name;
}

void TraceWriter::Impl::leave_sequence() {
    if (in_sequence) {
        in_sequence = false;
        push(Commit::when_idle, [](TraceStore& to) { to.end_sequence(false); });
    }
}

void TraceWriter::Impl::check_tokens(const TokenColumns& columns) const {
    const std::size_t n = columns.size();
    const bool spans = !columns.begin.empty() || !columns.end.empty();
    schema::each_token_field([&](const auto& field) {
        using Value = typename std::decay_t<decltype(columns.*field.values)>::value_type;
        const bool left_out = std::is_same_v<Value, std::uint64_t> && !spans;
        if (!left_out && (columns.*field.values).size() != n) {
            misuse("the columns of appended tokens have different lengths.");
        }
    });
    if (columns.first != tokens) {
        misuse("appended tokens start at " + std::to_string(columns.first) + ", but the sequence has " +
               std::to_string(tokens) + ".");
    }
    if (tokens + static_cast<std::int64_t>(n) > schema::max_tokens) {
        misuse("a sequence has more than " + std::to_string(schema::max_tokens) + " tokens; split the text.");
    }
    for (std::size_t i = 0; packed && i < n; ++i) {
        if (columns.steps[i] > std::numeric_limits<std::uint16_t>::max()) {
            misuse("a run of scalars has a token of " + std::to_string(columns.steps[i]) +
                   " steps, more than 65535; record it as basic.");
        }
    }
    for (std::size_t i = 0; spans && i < n; ++i) {
        if (columns.begin[i] > columns.end[i] || columns.end[i] > text_bytes) {
            misuse("token " + std::to_string(columns.first + static_cast<std::int64_t>(i)) + " spans bytes " +
                   std::to_string(columns.begin[i]) + " to " + std::to_string(columns.end[i]) +
                   ", but the text has " + std::to_string(text_bytes) + ".");
        }
    }
}

void TraceWriter::Impl::check_signals(const TokenColumns& columns,
                                      const std::vector<std::pair<std::string, SignalChunk>>& chunks) {
    std::map<std::string, Layout> now;
    for (const auto& [name, chunk] : chunks) {
        const auto declared = signals.find(name);
        if (declared == signals.end()) {
            misuse("signal " + name + " was not announced when its run began.");
        }
        if (chunk.shape.size() != declared->second.axes.size() || chunk.first != columns.first ||
            chunk.shape.front() != static_cast<std::int64_t>(columns.size())) {
            misuse("signal " + name + " has shape " + shape_to_json(chunk.shape) + " from token " +
                   std::to_string(chunk.first) + ", but its axes are " +
                   std::to_string(declared->second.axes.size()) + " and the tokens are " +
                   std::to_string(columns.size()) + " from " + std::to_string(columns.first) + ".");
        }
        std::size_t token_bytes = size_of(chunk.dtype);
        for (std::size_t axis = 1; axis < chunk.shape.size(); ++axis) {
            const std::int64_t length = chunk.shape[axis];
            if (length < 1 || static_cast<std::size_t>(length) > ChunkBuffer::max_token_bytes / token_bytes) {
                misuse("signal " + name + " has shape " + shape_to_json(chunk.shape) +
                       "; a token's values must be more than none and at most 256 MB.");
            }
            token_bytes *= static_cast<std::size_t>(length);
        }
        if (chunk.data.size() != token_bytes * columns.size()) {
            misuse("signal " + name + " has " + std::to_string(chunk.data.size()) + " bytes for shape " +
                   shape_to_json(chunk.shape) + ".");
        }
        Layout layout{chunk.dtype, std::vector<std::int64_t>(chunk.shape.begin() + 1, chunk.shape.end())};
        if (chunk.dtype != declared->second.dtype) {
            misuse("signal " + name + " is " + std::string(name_of(chunk.dtype)) + ", but was announced as " +
                   std::string(name_of(declared->second.dtype)) + ".");
        }
        if (declared->second.storage == SignalStorage::trimmed) {
            layout.shape.back() = 0; // any length
        }
        if (!now.emplace(name, std::move(layout)).second) {
            misuse("signal " + name + " was given twice for the same tokens.");
        }
    }
    if (columns.size() == 0) {
        return;
    }
    if (tokens == 0) {
        layouts = std::move(now);
    } else if (layouts != now) {
        misuse("the signals of a sequence changed their names, types or shapes at token " +
               std::to_string(tokens) + ".");
    }
}

TraceWriter::TraceWriter(const std::filesystem::path& path) : TraceWriter(path, Options()) {}

TraceWriter::TraceWriter(const std::filesystem::path& path, const Options& options)
    : impl_(std::make_unique<Impl>()) {
    impl_->path = path;
    impl_->options = options;
    impl_->open();
}

TraceWriter::~TraceWriter() = default;

std::map<std::string, SignalInfo> TraceWriter::Impl::by_name(const std::vector<SignalInfo>& announced) const {
    std::map<std::string, SignalInfo> by_name;
    for (const SignalInfo& signal : announced) {
        if (!schema::is_name(signal.name) || signal.axes.empty() || signal.axes.front() != "token" ||
            !std::all_of(signal.axes.begin(), signal.axes.end(), schema::is_name)) {
            misuse("signal \"" + signal.name +
                   "\" needs a name and axes of letters, digits and underscores, the first axis token.");
        }
        if (signal.name == packed_token_signal && signal.axes.size() == 2 && signal.axes[1] == "byte") {
            misuse("signal token along token and byte is what packs tokens; choose another name.");
        }
        if (!by_name.emplace(signal.name, signal).second) {
            misuse("signal " + signal.name + " was announced twice.");
        }
    }
    return by_name;
}

std::int64_t TraceWriter::begin_run(RunInfo info, std::vector<SignalInfo> declared,
                                    std::optional<ShardInfo> shard) {
    Impl& impl = *impl_;
    leave_run(-1);
    std::map<std::string, SignalInfo> by_name = impl.by_name(declared);
    if (shard) {
        try {
            impl.check_siblings({info, declared, shard->batch}, *shard);
        } catch (...) {
            impl.discard = impl.known.last_run == 0;
            throw;
        }
    }
    info.id = impl.known.last_run + 1;
    info.name = Impl::unique_name(info.name, impl.known.run_names);
    if (info.started.empty()) {
        info.started = utc_now();
    }
    // Runs with the same tokenizer share a vocabulary. A run without a tokenizer digest has its own.
    if (const auto known = impl.known.tokenizers.find(info.tokenizer_digest);
        known != impl.known.tokenizers.end()) {
        info.tokenizer = known->second;
    } else {
        info.tokenizer = ++impl.known.last_tokenizer;
        if (!info.tokenizer_digest.empty()) {
            impl.known.tokenizers[info.tokenizer_digest] = info.tokenizer;
        }
    }
    // Readers see a run as soon as it begins.
    impl.push(Commit::at_once, [info, signals = std::move(declared), shard](TraceStore& to) {
        to.begin_run(info, signals, shard);
    });
    impl.run = impl.known.last_run = info.id;
    impl.packed = info.record_level == "scalars";
    impl.tokenizer = info.tokenizer;
    impl.sequences_in_run = 0;
    impl.signals = std::move(by_name);
    return info.id;
}

std::int64_t TraceWriter::begin_sequence(std::string title, std::string text, std::string group,
                                         std::optional<std::int64_t> joined_number) {
    Impl& impl = *impl_;
    impl.need_run("A sequence");
    impl.leave_sequence();
    if (impl.known.last_sequence >= schema::max_sequence_id) {
        impl.misuse("the trace has more than " + std::to_string(schema::max_sequence_id) +
                    " sequences; begin another file.");
    }
    const std::size_t bytes = text.size();
    if (impl.packed && bytes > std::numeric_limits<std::uint32_t>::max()) {
        impl.misuse("a run of scalars has a text of more than 4 GiB; split it, or record it as basic.");
    }
    SequenceInfo info;
    info.title = std::move(title);
    info.group = std::move(group);
    info.joined_number = joined_number.value_or(-1);
    impl.push(
        Commit::later,
        [id = impl.known.last_sequence + 1, info = std::move(info), text = std::move(text)](TraceStore& to) {
            to.begin_sequence(id, info, text);
        },
        bytes);
    ++impl.known.last_sequence;
    impl.in_sequence = true;
    impl.tokens = 0;
    impl.text_bytes = bytes;
    impl.labelled_until = 0;
    impl.layouts.clear();
    return impl.sequences_in_run++;
}

void TraceWriter::append(TokenColumns tokens, std::vector<std::pair<std::string, SignalChunk>> chunks) {
    Impl& impl = *impl_;
    impl.need_sequence("Appending tokens");
    impl.check_tokens(tokens);
    impl.check_signals(tokens, chunks);
    const std::size_t n = tokens.size();
    if (n > 0) {
        std::size_t bytes = n * 48;
        for (const auto& [name, chunk] : chunks) {
            bytes += chunk.data.size();
        }
        impl.push(
            Commit::later,
            [tokens = std::move(tokens), chunks = std::move(chunks)](TraceStore& to) {
                to.append(tokens, chunks);
            },
            bytes);
        impl.tokens += static_cast<std::int64_t>(n);
    }
}

void TraceWriter::put_labels(std::vector<TextLabel> labels) {
    Impl& impl = *impl_;
    impl.need_sequence("A label");
    std::sort(labels.begin(), labels.end(),
              [](const TextLabel& a, const TextLabel& b) { return a.begin < b.begin; });
    std::uint64_t from = impl.labelled_until;
    for (const TextLabel& label : labels) {
        if (label.begin >= label.end || label.begin < from || label.end > impl.text_bytes) {
            impl.misuse("a label lies at bytes " + std::to_string(label.begin) + " to " +
                        std::to_string(label.end) + ", where the text has no room for it.");
        }
        from = label.end;
    }
    const std::size_t bytes = labels.size() * sizeof(TextLabel);
    impl.push(
        Commit::later, [labels = std::move(labels)](TraceStore& to) { to.put_labels(labels); }, bytes);
    impl.labelled_until = from;
}

void TraceWriter::put_text_digest(std::string digest) {
    Impl& impl = *impl_;
    impl.need_run("The digest of the text");
    impl.push(Commit::later, [digest = std::move(digest)](TraceStore& to) { to.put_text_digest(digest); });
}

void TraceWriter::end_sequence() {
    Impl& impl = *impl_;
    impl.need_sequence("The end of a sequence");
    impl.push(Commit::when_idle, [](TraceStore& to) { to.end_sequence(true); });
    impl.in_sequence = false;
}

void TraceWriter::put_vocabulary(std::vector<std::pair<std::int32_t, std::string>> token_bytes) {
    Impl& impl = *impl_;
    impl.need_run("The vocabulary");
    const std::size_t bytes = token_bytes.size() * 48;
    impl.push(
        Commit::later,
        [tokenizer = impl.tokenizer, words = std::move(token_bytes)](TraceStore& to) {
            to.put_vocabulary(tokenizer, words);
        },
        bytes);
}

void TraceWriter::put_fault(std::string message) {
    put_fault(FaultInfo{0, -1, utc_now(), std::move(message)});
}

void TraceWriter::put_fault(const FaultInfo& fault) {
    Impl& impl = *impl_;
    impl.need_run("A fault");
    impl.push(Commit::later,
              [run = impl.run, sequence = impl.in_sequence ? impl.sequences_in_run - 1 : -1,
               fault](TraceStore& to) { to.put_fault(run, sequence, fault.time, fault.message); });
}

void TraceWriter::end_run(double seconds) {
    Impl& impl = *impl_;
    impl.need_run("The end of a run");
    impl.leave_sequence();
    impl.push(Commit::when_idle, [seconds](TraceStore& to) { to.end_run(seconds, true); });
    impl.run = 0;
}

void TraceWriter::leave_run(double seconds) {
    Impl& impl = *impl_;
    if (impl.run == 0) {
        return;
    }
    impl.leave_sequence();
    impl.push(Commit::when_idle, [seconds](TraceStore& to) { to.end_run(seconds, false); });
    impl.run = 0;
}

void TraceWriter::finish() {
    Impl& impl = *impl_;
    if (!impl.finished) {
        leave_run(-1);
        impl.finished = true;
        impl.stop();
    }
    if (impl.failure) {
        std::rethrow_exception(impl.failure);
    }
}

} // namespace ponderscope
