// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/library/run_intervals.h"

#include "core/base/error.h"
#include "core/base/given_up.h"
#include "core/base/not_a_number.h"
#include "core/stats/paired.h"
#include "core/trace/reader.h"
#include "views/common/hand_over.h"
#include "views/common/paths.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

namespace ponderscope {

namespace {

/// Beyond this a file is not read just for a number in a list.
constexpr std::int64_t most_tokens = 4'000'000;
/// Enough for two digits of a half-width; comparisons draw their own, more.
constexpr std::int64_t replicates = 1000;

/// Fewer blocks than this cannot say how their mean varies (core/stats says so beside such intervals).
constexpr double least_blocks = 10;

struct Width {
    double nats = not_a_number;
    QString why; ///< there is none
};

Width half_width(const RunKey& key, const std::stop_token& stop) {
    const TraceReader trace = TraceReader::open(path_of(key.trace));
    const std::vector<RunInfo> runs = trace.runs();
    const auto run =
        std::find_if(runs.begin(), runs.end(), [&](const RunInfo& one) { return one.id == key.run; });
    if (run == runs.end()) {
        return {};
    }
    BootstrapOptions options;
    options.replicates = replicates;
    options.threads = 1;
    options.stop = stop;
    const RunEstimate found = estimate_run(trace, *run, options);
    const Estimate& estimate = found.mean_nll;
    const double width = (estimate.high - estimate.low) / 2;
    const Resampling& how = found.resampling;
    if (how.unit == ResamplingUnit::blocks && (how.units < least_blocks || std::isnan(width))) {
        return {not_a_number,
                QObject::tr("No interval: the %1 predicted tokens make %2 blocks of %3; fewer than %4 "
                            "blocks say too little about how the mean varies. Score a longer text.")
                    .arg(found.scored_tokens)
                    .arg(static_cast<qint64>(how.units))
                    .arg(how.block)
                    .arg(static_cast<int>(least_blocks))};
    }
    return {width, {}};
}

/// A run by what it holds, so that one that took its place in the file is worked out anew: the same text
/// gives as many tokens, and a trace that was written again gives its numbers again.
struct Job {
    RunKey key;
    std::int64_t tokens = 0;
    std::uint64_t nll = 0; ///< bits of the sum, which may be no number
    friend bool operator<(const Job& a, const Job& b) {
        return std::tie(a.key, a.tokens, a.nll) < std::tie(b.key, b.tokens, b.nll);
    }
};

Job job_of(const RunKey& key, const RunInfo& run) {
    return {key, run.tokens, std::bit_cast<std::uint64_t>(run.nll_sum)};
}

} // namespace

struct RunIntervals::Impl {
    explicit Impl(RunIntervals& self) : owner(self) {}

    void loop(const std::stop_token& stop) {
        const GivenUpBy scope(stop);
        for (;;) {
            Job job;
            {
                std::unique_lock lock(mutex);
                if (!wake.wait(lock, stop, [this] { return !jobs.empty(); })) {
                    return;
                }
                job = jobs.front();
                jobs.pop_front();
            }
            Width width;
            try {
                width = half_width(job.key, stop);
            } catch (const std::exception&) {
                // A damaged part is reported where it is looked at; here the number stays away.
            }
            hand_over(&owner, [this, job, width] {
                known[job] = width;
                Q_EMIT owner.ready(job.key);
            });
        }
    }

    RunIntervals& owner;
    std::map<Job, Width> known;
    std::mutex mutex;
    std::condition_variable_any wake;
    std::deque<Job> jobs;
    std::jthread worker{[this](const std::stop_token& stop) { loop(stop); }};
};

RunIntervals::RunIntervals(QObject* parent) : QObject(parent), impl_(std::make_unique<Impl>(*this)) {}

RunIntervals::~RunIntervals() = default;

double RunIntervals::halfWidth(const RunKey& key, const RunInfo& run) {
    if (!run.complete || run.tokens > most_tokens || run.scored_tokens < 2) {
        return not_a_number;
    }
    const Job job = job_of(key, run);
    const auto [place, fresh] = impl_->known.emplace(job, Width());
    if (fresh) {
        {
            const std::lock_guard lock(impl_->mutex);
            impl_->jobs.push_back(job);
        }
        impl_->wake.notify_one();
    }
    return place->second.nats;
}

QString RunIntervals::whyNone(const RunKey& key, const RunInfo& run) const {
    const auto place = impl_->known.find(job_of(key, run));
    return place == impl_->known.end() ? QString() : place->second.why;
}

} // namespace ponderscope
