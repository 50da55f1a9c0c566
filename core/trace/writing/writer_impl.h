// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/trace/shard.h"
#include "core/trace/writer.h"
#include "core/trace/writing/lock_file.h"
#include "core/trace/writing/store.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ponderscope {

/// A call of TraceStore with its arguments, for the writer thread.
struct QueuedCall {
    /// When the call's rows are committed: with the next commit, as soon as the queue is empty, or before the
    /// next call.
    enum class Commit : std::uint8_t { later, when_idle, at_once };
    std::function<void(TraceStore&)> call;
    Commit commit = Commit::later;
    std::size_t bytes = 0; ///< approximate size of the arguments
};

/// The caller's side and the queue to the writer thread.
struct TraceWriter::Impl {
    std::filesystem::path path;   // as the caller gave it
    std::filesystem::path target; // the file itself if `path` is a link
    Options options;
    std::optional<LockFile> lock; // released last
    std::optional<TraceStore> store;

    std::mutex mutex;
    std::condition_variable work; // for the writer thread
    std::condition_variable room; // for the caller
    std::deque<QueuedCall> queue;
    std::size_t queued_bytes = 0;
    bool closing = false;
    std::exception_ptr failure;
    std::thread thread;

    // The state after all queued calls. A new call is checked against this state at once.
    bool finished = false;
    bool made = false;          // this writer created the file
    FileId file;                // the file at opening
    bool discard = false;       // remove the file
    bool nothing_kept = false;  // set by the writer thread: it failed before its first commit
    TraceStore::Contents known; // content of the file, including everything begun since
    std::int64_t run = 0;       // 0 = none
    std::int64_t tokenizer = 0;
    std::int64_t sequences_in_run = 0;
    std::map<std::string, SignalInfo> signals;
    bool in_sequence = false;
    std::int64_t tokens = 0;
    std::uint64_t text_bytes = 0;
    bool packed = false; // RunInfo::record_level is "scalars"
    std::uint64_t labelled_until = 0;
    struct Layout {
        DType dtype;
        std::vector<std::int64_t> shape; // shape of one token's values
        friend bool operator==(const Layout&, const Layout&) = default;
    };
    std::map<std::string, Layout> layouts; // the sequence's signals

    ~Impl() { stop(); }

    [[noreturn]] void misuse(const std::string& what) const {
        throw InputError(ErrorId::environment_failed, path.string() + ": " + what);
    }
    void need_run(const char* call) const {
        if (run == 0) {
            misuse(std::string(call) + " was asked for outside a run.");
        }
    }
    void need_sequence(const char* call) const {
        if (!in_sequence) {
            misuse(std::string(call) + " was asked for outside a sequence.");
        }
    }

    void open();
    /// The error for a failed write. \p kept: the message says that earlier data stays. For a temporary file
    /// it does not say so and names the final path.
    [[nodiscard]] EnvironmentError failed(const SqliteFailure& why, bool kept) const;
    /// InputError if other existing shards of the run have other texts or options.
    void check_siblings(const Recording& own, const ShardInfo& shard) const;
    void push(QueuedCall::Commit commit, std::function<void(TraceStore&)> call, std::size_t bytes = 0);
    void work_off();
    void stop() noexcept;
    void leave_sequence();
    /// The declared signals by name. InputError: a repeated or invalid name.
    [[nodiscard]] std::map<std::string, SignalInfo> by_name(const std::vector<SignalInfo>& announced) const;
    void check_tokens(const TokenColumns& columns) const;
    void check_signals(const TokenColumns& columns,
                       const std::vector<std::pair<std::string, SignalChunk>>& chunks);
    static std::string unique_name(const std::string& wanted, std::set<std::string>& taken);
    void need_training(std::int64_t training) const {
        if (training < 1 || training > known.last_training) {
            misuse("training " + std::to_string(training) + " was never begun.");
        }
    }
};

} // namespace ponderscope
