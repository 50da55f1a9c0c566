// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/scan.h"

#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/stats/worker_pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <sys/resource.h>
#include <thread>

namespace ponderscope {
namespace {

/// How often \p files more may be opened at once, most of what the system allows.
std::size_t times_to_open(std::size_t files) {
    rlimit limit{};
    constexpr std::size_t others = 256;   // files of this process that are none of ours
    constexpr std::size_t of_a_trace = 3; // while it is recorded: its log, and the log's index
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= others) {
        return 0;
    }
    return (static_cast<std::size_t>(limit.rlim_cur) - others) /
           (of_a_trace * std::max<std::size_t>(1, files));
}

} // namespace

std::vector<std::int64_t> tokens_of(const std::vector<SequenceInfo>& sequences) {
    std::vector<std::int64_t> tokens;
    for (const SequenceInfo& sequence : sequences) {
        tokens.push_back(sequence.tokens);
    }
    return tokens;
}

SequenceScan::SequenceScan(std::vector<const TraceReader*> traces, std::vector<std::int64_t> tokens,
                           ProgressSink progress, std::stop_token stop, int threads)
    : tokens_(std::move(tokens)), progress_(std::move(progress)), stop_(std::move(stop)) {
    constexpr std::int64_t tokens_a_part = 1 << 16;
    std::int64_t size = tokens_a_part;
    for (std::size_t s = 0; s < tokens_.size(); ++s) {
        if (size >= tokens_a_part) {
            parts_.push_back(s);
            size = 0;
        }
        size += tokens_[s];
    }
    const std::size_t parts = parts_.size();
    parts_.push_back(tokens_.size());
    std::size_t files = 0;
    for (const TraceReader* trace : traces) {
        files += trace->files().size();
    }
    constexpr std::size_t most = 16;
    const std::size_t wanted =
        threads > 0 ? static_cast<std::size_t>(threads) : std::max(1U, std::thread::hardware_concurrency());
    const std::size_t workers = std::max<std::size_t>(1, std::min({wanted, most, parts}));
    const bool far = std::any_of(traces.begin(), traces.end(),
                                 [](const TraceReader* trace) { return remote::is_remote(trace->path()); });
    const std::size_t more = far ? 0 : std::min(workers - 1, times_to_open(files));
    opened_.reserve(more * traces.size());
    readers_.push_back(traces);
    for (std::size_t worker = 0; worker < more; ++worker) {
        readers_.emplace_back();
        for (const TraceReader* trace : traces) {
            opened_.push_back(trace->another());
            readers_.back().push_back(&opened_.back());
        }
    }
}

void SequenceScan::each(const std::function<Commit(const Part&)>& visit) const {
    const std::int64_t total = std::accumulate(tokens_.begin(), tokens_.end(), std::int64_t{0});
    std::mutex mutex; // of all below
    std::map<std::size_t, Commit> ready;
    std::size_t committed = 0;
    std::int64_t read = 0;
    std::vector<std::shared_ptr<const void>> held;
    for (const std::vector<const TraceReader*>& readers : readers_) {
        for (const TraceReader* reader : readers) {
            held.push_back(reader->pin_snapshot());
        }
    }
    for_each_part(parts_.size() - 1, workers(), [&](std::size_t part, std::size_t worker) {
        if (stop_.stop_requested()) {
            throw Cancelled();
        }
        const std::size_t first = parts_[part];
        const std::size_t end = parts_[part + 1];
        Commit commit = visit(
            {worker, readers_[worker], static_cast<std::int64_t>(first), static_cast<std::int64_t>(end)});
        const std::scoped_lock lock(mutex);
        ready.emplace(part, std::move(commit));
        for (; !ready.empty() && ready.begin()->first == committed; ++committed) {
            if (ready.begin()->second) {
                ready.begin()->second();
            }
            ready.erase(ready.begin());
        }
        read = std::accumulate(tokens_.begin() + static_cast<std::ptrdiff_t>(first),
                               tokens_.begin() + static_cast<std::ptrdiff_t>(end), read);
        if (progress_ && worker == 0) {
            progress_({"reading", read, total, "tokens"});
        }
    });
}

} // namespace ponderscope
