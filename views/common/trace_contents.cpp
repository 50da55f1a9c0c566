// SPDX-License-Identifier: GPL-3.0-or-later
// Before Qt, whose keyword `signals` is a name there.
#include "core/trace/reader.h"

#include "views/common/trace_contents.h"

#include <algorithm>

#undef signals

namespace ponderscope {

TraceContents read_contents(const TraceReader& reader) {
    TraceContents all;
    all.runs = reader.runs();
    all.trainings = reader.trainings();
    for (const RunInfo& run : all.runs) {
        all.sequences[run.id] = reader.sequences(run.id);
        all.signalInfos[run.id] = reader.signals(run.id);
        all.faults[run.id] = reader.faults(run.id);
    }
    return all;
}

bool same_contents(const TraceContents& a, const TraceContents& b) {
    const auto sameRun = [](const RunInfo& x, const RunInfo& y) {
        return x.id == y.id && x.name == y.name && x.tokens == y.tokens && x.sequences == y.sequences &&
               x.complete == y.complete && x.scored_tokens == y.scored_tokens && x.nll_sum == y.nll_sum &&
               x.seconds == y.seconds;
    };
    const auto sameSequence = [](const SequenceInfo& x, const SequenceInfo& y) {
        return x.index == y.index && x.tokens == y.tokens && x.complete == y.complete &&
               x.nll_sum == y.nll_sum;
    };
    const auto sameTraining = [](const TrainingInfo& x, const TrainingInfo& y) {
        return x.id == y.id && x.name == y.name && x.step == y.step && x.seconds == y.seconds &&
               x.complete == y.complete && x.fault == y.fault;
    };
    if (!std::equal(a.trainings.begin(), a.trainings.end(), b.trainings.begin(), b.trainings.end(),
                    sameTraining)) {
        return false;
    }
    if (!std::equal(a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end(), sameRun)) {
        return false;
    }
    const auto sameFaults = [](const auto& x, const auto& y) { return x.second.size() == y.second.size(); };
    if (!std::equal(a.faults.begin(), a.faults.end(), b.faults.begin(), b.faults.end(), sameFaults)) {
        return false;
    }
    for (const RunInfo& run : a.runs) {
        const auto x = a.sequences.find(run.id);
        const auto y = b.sequences.find(run.id);
        if (x == a.sequences.end() || y == b.sequences.end() ||
            !std::equal(x->second.begin(), x->second.end(), y->second.begin(), y->second.end(),
                        sameSequence)) {
            return false;
        }
    }
    return true;
}

} // namespace ponderscope
