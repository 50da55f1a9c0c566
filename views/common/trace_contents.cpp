// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/trace_contents.h"

#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/remote/host.h"
#include "core/trace/annotations.h"
#include "core/trace/reader.h"
#include "views/common/paths.h"

#include <algorithm>

namespace ponderscope {

namespace {

/// Another number when the annotations were written again; 0: there are none.
qint64 stamp_of_annotations(const std::filesystem::path& path) {
    if (remote::is_remote(path)) {
        return remote::look(path).times[0];
    }
    std::error_code error;
    const auto written = std::filesystem::last_write_time(path, error);
    return error ? 0 : written.time_since_epoch().count() | 1;
}

/// What readers of annotations leave out, as sentences of the runs.
void note_annotations(const TraceReader& reader, TraceContents& all) {
    all.annotationsStamp = stamp_of_annotations(annotations_path(reader.path()));
    if (all.annotationsStamp == 0) {
        return;
    }
    try {
        const std::optional<AnnotationReader> annotations = AnnotationReader::beside(reader.path());
        for (const RunInfo& run : all.runs) {
            for (const AnnotationInfo& one :
                 annotations ? annotations->of(run) : std::vector<AnnotationInfo>()) {
                if (const std::string misfit = misfit_of(one, run); !misfit.empty()) {
                    all.faults[run.id].push_back({run.id, -1, {}, misfit + "."});
                }
            }
        }
    } catch (const Error& fault) { // none of annotations, damaged, locked: the trace is there all the same
        for (const RunInfo& run : all.runs) {
            all.faults[run.id].push_back({run.id, -1, {}, fault.what()});
        }
    }
}

} // namespace

TraceContents read_contents(const TraceReader& reader) {
    TraceContents all;
    for (const std::filesystem::path& file : reader.files()) {
        all.files << path_text(file);
    }
    all.runs = reader.runs();
    all.trainings = reader.trainings();
    for (const RunInfo& run : all.runs) {
        all.sequences[run.id] = reader.sequences(run.id);
        all.signalInfos[run.id] = reader.signal_infos(run.id);
        all.faults[run.id] = reader.faults(run.id);
    }
    note_annotations(reader, all);
    return all;
}

bool same_contents(const TraceContents& a, const TraceContents& b) {
    if (a.annotationsStamp != b.annotationsStamp) {
        return false;
    }
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
    return std::all_of(a.runs.begin(), a.runs.end(), [&](const RunInfo& run) {
        const auto x = a.sequences.find(run.id);
        const auto y = b.sequences.find(run.id);
        return x != a.sequences.end() && y != b.sequences.end() &&
               std::equal(x->second.begin(), x->second.end(), y->second.begin(), y->second.end(),
                          sameSequence);
    });
}

} // namespace ponderscope
