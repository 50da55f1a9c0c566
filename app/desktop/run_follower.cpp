// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/run_follower.h"

#include "app/desktop/open_traces.h"
#include "views/common/paths.h"

#include <algorithm>
#include <utility>

namespace ponderscope {

RunFollower::RunFollower(TraceData& data, Selection& selection, Opener& opener, QObject* parent)
    : QObject(parent), data_(data), selection_(selection), opener_(opener) {}

void RunFollower::listen() {
    connect(&opener_, &Opener::opened, this, &RunFollower::traceChanged);
    connect(&data_, &TraceData::traceChanged, this, &RunFollower::traceChanged);
    connect(&data_, &TraceData::traceClosed, this, [this](const QString& trace) {
        if (trace == trace_) {
            trace_.clear(); // a continuing recording does not open the closed trace again
        }
        std::erase_if(wanted_, [&](const Wanted& one) { return one.trace == trace; });
    });
}

void RunFollower::begin(const QString& trace, As as) {
    trace_ = trace;
    as_ = as;
    question_ = std::exchange(next_, {});
    fromA_ = selection_.runA();
    fromB_ = selection_.runB();
    fresh_ = {};
    known_.clear();
    for (const RunInfo& run : data_.runs(trace_)) {
        known_.push_back(run.id);
    }
}

bool RunFollower::follows() const {
    const RunKey a = selection_.runA();
    return as_ == As::a ? a == fromA_ || (fresh_.isValid() && a == fresh_)
                        : a == fromA_ && (selection_.runB() == fromB_ || selection_.runB() == fresh_);
}

void RunFollower::rebase(const RunKey& a, const RunKey& b) {
    liveFrom_ = liveFrom_ == a ? selection_.runA() : liveFrom_;
    fromA_ = fromA_ == a ? selection_.runA() : fromA_;
    fromB_ = fromB_ == b ? selection_.runB() : fromB_;
}

void RunFollower::finish(const QString& trace, const QString& run) {
    const RunKey question = std::exchange(question_, {});
    if (run.isEmpty() || trace_.isEmpty()) {
        return;
    }
    // A run that was shown while it grew is not shown again, except a what-if, to show its difference.
    const bool due = question.isValid() || !fresh_.isValid();
    want({trace, run, as_, question, selection_.runA(), false, due && follows()});
}

void RunFollower::showLive(const RunKey& live) {
    if (selection_.runA() == liveFrom_) {
        selection_.setRunA(live);
        selection_.setSequence(0);
    }
}

void RunFollower::finishLive(const RunKey& live, const QString& trace, const QString& run,
                             const RunKey& parent) {
    want({absolute_name(trace), run, As::a, parent, selection_.runA(), true, selection_.runA() == live});
}

void RunFollower::want(Wanted wanted) {
    const QString trace = wanted.trace;
    wanted_.push_back(std::move(wanted));
    if (data_.isOpen(trace)) {
        showWanted(trace); // the trace may already have the run
        data_.refresh(trace);
    } else {
        opener_.openTrace(trace);
    }
}

void RunFollower::traceChanged(const QString& trace) {
    showWanted(trace);
    if (trace != trace_ || fresh_.isValid()) {
        return;
    }
    const std::vector<RunInfo> runs = data_.runs(trace);
    const auto fresh = std::ranges::find_if(
        runs, [this](const RunInfo& run) { return std::ranges::find(known_, run.id) == known_.end(); });
    if (fresh == runs.end()) {
        return;
    }
    const bool shown = follows();
    fresh_ = {trace, fresh->id};
    if (shown && as_ == As::b) {
        selection_.setRunB(fresh_); // as B, because the lab shows run A
    } else if (shown) {
        showAsA(fresh_, question_);
    }
}

RunKey run_over_same_text(const TraceData& data, const RunKey& run) {
    const RunInfo* known = data.run(run);
    for (const QString& trace : data.traces()) {
        for (const RunInfo& other : data.runs(trace)) {
            const RunKey key{trace, other.id};
            if (known != nullptr && !(key == run) && other.text_digest == known->text_digest) {
                return key;
            }
        }
    }
    return {};
}

void RunFollower::showAsA(const RunKey& key, const RunKey& before) {
    const RunInfo* run = data_.run(key);
    const auto comparable = [&](const RunKey& other) {
        const RunInfo* info = data_.run(other);
        return run != nullptr && info != nullptr && !(other == key) &&
               (info->text_digest == run->text_digest || other == before);
    };
    const RunKey candidates[] = {before, selection_.runA(), selection_.runB()};
    const auto* const b = std::find_if(std::begin(candidates), std::end(candidates), comparable);
    const RunKey other = b != std::end(candidates) ? *b : run_over_same_text(data_, key);
    selection_.setRunA(key);
    selection_.setRunB(other);
}

void RunFollower::showWanted(const QString& trace) {
    for (const RunInfo& run : data_.runs(trace)) {
        const auto one = std::ranges::find_if(wanted_, [&](const Wanted& wanted) {
            return wanted.trace == trace && QString::fromStdString(run.name) == wanted.name && run.complete;
        });
        if (one == wanted_.end()) {
            continue;
        }
        const Wanted wanted = *one;
        wanted_.erase(one);
        const RunKey key{trace, run.id};
        if (wanted.shown && selection_.runA() == wanted.from) {
            if (wanted.as == As::b) {
                selection_.setRunB(key);
            } else {
                const qint64 token = selection_.token();
                showAsA(key, wanted.before);
                selection_.setToken(token);
                if (wanted.before.isValid() && !wanted.live) {
                    Q_EMIT compared();
                }
            }
        }
        if (wanted.live) {
            Q_EMIT liveRecorded();
        }
    }
}

} // namespace ponderscope
