// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/scan.h"

#include "core/base/error.h"
#include "core/base/given_up.h"
#include "core/remote/address.h"
#include "core/stats/paired.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

namespace ponderscope {

void for_each_part(std::size_t parts, std::size_t workers,
                   const std::function<void(std::size_t, std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    std::mutex mutex; // of `failures`
    std::map<std::size_t, std::exception_ptr> failures;
    const auto run = [&](std::size_t worker) {
        for (std::size_t part; !failed && (part = next++) < parts;) {
            try {
                work(part, worker);
            } catch (...) {
                failed = true;
                const std::scoped_lock lock(mutex);
                failures.emplace(part, std::current_exception());
            }
        }
    };
    {
        std::vector<std::jthread> helpers;
        try {
            for (std::size_t worker = 1; worker < workers; ++worker) {
                helpers.emplace_back([&run, worker, stop = GivenUpBy::current()] {
                    const GivenUpBy scope(stop);
                    run(worker);
                });
            }
        } catch (const std::system_error&) {
            // The system has no more threads: those that began, and this one, do all parts.
        }
        run(0);
    }
    if (!failures.empty()) {
        std::rethrow_exception(failures.begin()->second);
    }
}

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

void ScoredTokens::append(const ScoredTokens& more) {
    append_to(id, more.id);
    append_to(steps, more.steps);
    append_to(nll, more.nll);
    append_to(entropy, more.entropy);
    append_to(bytes, more.bytes);
    layout.append(more.layout);
}

ScoredRun::ScoredRun(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options,
                     bool keep_tokens, LabelPlace types)
    : trace_(trace),
      run_(run),
      types_(types),
      sequences_(trace.sequences(run.id)),
      scan_({&trace}, tokens_of(sequences_), options.progress, options.stop, options.threads) {
    ClusterNumbers clusters;
    ClusterNumbers scored;
    for (const SequenceInfo& sequence : sequences_) {
        // Number every sequence: which tokens have a target, and so belong to the sample, is known only when
        // they are read.
        cluster_.push_back(clusters.of(sequence));
        most_tokens_ += sequence.scored_tokens;
        if (sequence.scored_tokens > 0) {
            (void)scored.of(sequence);
        }
    }
    most_clusters_ = clusters.count();
    if (keep_tokens || !draws_whole_clusters(options, scored.count())) {
        tokens_ = read_all(scan_, pages());
        most_tokens_ = static_cast<std::int64_t>(tokens_->nll.size());
        most_clusters_ = tokens_->layout.clusters();
    }
    if (most_tokens_ == 0) {
        throw InputError(trace.short_name_of(run) +
                         ": expected scored tokens, found none; wait until the recording has more tokens.");
    }
}

Source<ScoredTokens> ScoredRun::source() const {
    return tokens_ ? source_of(*tokens_) : source_of(scan_, pages());
}

ReadPage<ScoredTokens> ScoredRun::pages() const {
    return [this](std::span<const TraceReader* const> readers, std::int64_t number, std::int64_t& from,
                  ScoredTokens& into) {
        constexpr std::int64_t page = 1 << 16;
        const auto s = static_cast<std::size_t>(number);
        const std::int64_t begin = from;
        const std::int64_t end = std::min(begin + page, sequences_[s].tokens);
        from = end;
        // One more for the target of the last.
        const TokenColumns tokens = readers[0]->tokens(run_.id, number, begin, end + 1);
        for (std::size_t i = 0; i < static_cast<std::size_t>(end - begin); ++i) {
            if (std::isnan(tokens.nll[i])) {
                continue;
            }
            const std::int64_t position = begin + static_cast<std::int64_t>(i);
            into.layout.add(cluster_[s], into.last + 1 == position);
            into.last = position;
            into.id.push_back(
                tokens.id[std::min(i + (types_ == LabelPlace::prediction ? 1U : 0U), tokens.size() - 1)]);
            into.steps.push_back(static_cast<double>(tokens.steps[i]));
            into.nll.push_back(double{tokens.nll[i]});
            into.entropy.push_back(double{tokens.entropy[i]});
            into.bytes.push_back(target_bytes(tokens, i));
        }
        return end < sequences_[s].tokens;
    };
}

} // namespace ponderscope
