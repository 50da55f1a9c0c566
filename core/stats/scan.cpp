// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/scan.h"

#include "core/base/error.h"
#include "core/base/scoped_stop.h"
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
    std::mutex mutex; // guards `failures`
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
                helpers.emplace_back([&run, worker, stop = ScopedStop::current()] {
                    const ScopedStop scope(stop);
                    run(worker);
                });
            }
        } catch (const std::system_error&) {
            // The system has no more threads. The started threads and this one do all parts.
        }
        run(0);
    }
    if (!failures.empty()) {
        std::rethrow_exception(failures.begin()->second);
    }
}

namespace {

/// How many more times \p files files can be opened under the system's limit.
std::size_t times_to_open(std::size_t files) {
    rlimit limit{};
    constexpr std::size_t others = 256;   // for other open files of this process
    constexpr std::size_t of_a_trace = 3; // the trace, its log and the log's index
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= others) {
        return 0;
    }
    return (static_cast<std::size_t>(limit.rlim_cur) - others) /
           (of_a_trace * std::max<std::size_t>(1, files));
}

} // namespace

void read_sequences(const std::vector<const TraceReader*>& traces, std::span<const std::int64_t> tokens,
                    const ReadSequences& read, const ReadOptions& options) {
    constexpr std::int64_t tokens_a_part = 1 << 16;
    std::vector<std::size_t> begins; // first sequence of each part, then the number of sequences
    std::int64_t size = tokens_a_part;
    for (std::size_t s = 0; s < tokens.size(); ++s) {
        if (size >= tokens_a_part) {
            begins.push_back(s);
            size = 0;
        }
        size += tokens[s];
    }
    const std::size_t parts = begins.size();
    begins.push_back(tokens.size());
    std::size_t files = 0;
    for (const TraceReader* trace : traces) {
        files += trace->files().size();
    }
    constexpr std::size_t most = 16;
    const std::size_t wanted = options.threads > 0 ? static_cast<std::size_t>(options.threads)
                                                   : std::max(1U, std::thread::hardware_concurrency());
    const std::size_t workers = std::max<std::size_t>(1, std::min({wanted, most, parts}));
    const bool far = std::any_of(traces.begin(), traces.end(),
                                 [](const TraceReader* trace) { return remote::is_remote(trace->path()); });
    const std::size_t more = far ? 0 : std::min(workers - 1, times_to_open(files));
    std::vector<TraceReader> opened;
    opened.reserve(more * traces.size());
    std::vector<std::vector<const TraceReader*>> readers{traces}; // [worker][trace]
    for (std::size_t worker = 0; worker < more; ++worker) {
        readers.emplace_back();
        for (const TraceReader* trace : traces) {
            opened.push_back(trace->another());
            readers.back().push_back(&opened.back());
        }
    }
    std::vector<std::shared_ptr<const void>> held;
    for (const std::vector<const TraceReader*>& own : readers) {
        for (const TraceReader* reader : own) {
            held.push_back(reader->pin_snapshot());
        }
    }
    const std::int64_t total = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
    std::mutex mutex; // guards the variables below
    std::map<std::size_t, std::function<void()>> ready;
    std::size_t done = 0;
    std::int64_t seen = 0;
    for_each_part(parts, readers.size(), [&](std::size_t part, std::size_t worker) {
        throw_if_stopped(options.stop);
        const std::size_t first = begins[part];
        const std::size_t end = begins[part + 1];
        std::function<void()> work =
            read(readers[worker], static_cast<std::int64_t>(first), static_cast<std::int64_t>(end));
        const std::scoped_lock lock(mutex);
        ready.emplace(part, std::move(work));
        for (; !ready.empty() && ready.begin()->first == done; ++done) {
            ready.begin()->second();
            ready.erase(ready.begin());
        }
        seen = std::accumulate(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                               tokens.begin() + static_cast<std::ptrdiff_t>(end), seen);
        if (options.progress && worker == 0) {
            options.progress({"reading", seen, total, "tokens"});
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

ScoredTokens read_scored(const TraceReader& trace, const RunInfo& run, const ReadOptions& options,
                         LabelPlace types) {
    const std::vector<SequenceInfo> sequences = trace.sequences(run.id);
    ClusterNumbers numbers;
    std::vector<std::int64_t> clusters, lengths;
    for (const SequenceInfo& sequence : sequences) {
        clusters.push_back(numbers.of(sequence));
        lengths.push_back(sequence.tokens);
    }
    const auto read = [&](std::span<const TraceReader* const> readers, std::int64_t number,
                          std::int64_t begin, std::int64_t end, ScoredTokens& into) {
        // One more token, which is the target of the last one.
        const TokenColumns tokens = readers[0]->tokens(run.id, number, begin, end + 1);
        for (std::size_t i = 0; i < static_cast<std::size_t>(end - begin); ++i) {
            if (std::isnan(tokens.nll[i])) {
                continue;
            }
            const std::int64_t position = begin + static_cast<std::int64_t>(i);
            into.layout.add(clusters[static_cast<std::size_t>(number)], into.last + 1 == position);
            into.last = position;
            into.id.push_back(
                tokens.id[std::min(i + (types == LabelPlace::prediction ? 1U : 0U), tokens.size() - 1)]);
            into.steps.push_back(static_cast<double>(tokens.steps[i]));
            into.nll.push_back(double{tokens.nll[i]});
            into.entropy.push_back(double{tokens.entropy[i]});
            into.bytes.push_back(target_bytes(tokens, i));
        }
    };
    ScoredTokens all = read_sample<ScoredTokens>({&trace}, lengths, read, options);
    if (all.nll.empty()) {
        throw InputError(
            ErrorId::run_unscored,
            trace.short_name_of(run) +
                ": expected scored tokens, found none; wait until the recording has more tokens.");
    }
    return all;
}

} // namespace ponderscope
