// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/trace_contents.h"

#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/remote/host.h"
#include "core/trace/tools/annotations.h"
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
void note_annotations(const TraceReader& reader, std::vector<std::shared_ptr<RunContents>>& runs) {
    try {
        const std::optional<AnnotationReader> annotations = AnnotationReader::beside(reader.path());
        for (const auto& run : runs) {
            for (const AnnotationInfo& one :
                 annotations ? annotations->of(run->info) : std::vector<AnnotationInfo>()) {
                if (const std::string misfit = misfit_of(one, run->info); !misfit.empty()) {
                    run->faults.push_back({run->info.id, -1, {}, misfit + "."});
                }
            }
        }
    } catch (const Error& fault) { // none of annotations, damaged, locked: the trace is there all the same
        for (const auto& run : runs) {
            run->faults.push_back({run->info.id, -1, {}, fault.what()});
        }
    }
}

bool same_info(const RunInfo& x, const RunInfo& y) {
    return x.id == y.id && x.name == y.name && x.tokens == y.tokens && x.sequences == y.sequences &&
           x.complete == y.complete && x.scored_tokens == y.scored_tokens && x.nll_sum == y.nll_sum &&
           x.seconds == y.seconds && x.checkpoint_digest == y.checkpoint_digest;
}

bool same_run(const RunContents& a, const RunContents& b) {
    const auto same_sequence = [](const SequenceInfo& x, const SequenceInfo& y) {
        return x.number == y.number && x.tokens == y.tokens && x.complete == y.complete &&
               x.nll_sum == y.nll_sum;
    };
    return same_info(a.info, b.info) && a.faults.size() == b.faults.size() &&
           a.signals.size() == b.signals.size() &&
           std::equal(a.sequences.begin(), a.sequences.end(), b.sequences.begin(), b.sequences.end(),
                      same_sequence);
}

} // namespace

std::shared_ptr<const RunContents> TraceContents::run(qint64 id) const {
    const auto found =
        std::find_if(runs.begin(), runs.end(), [id](const auto& one) { return one->info.id == id; });
    return found == runs.end() ? nullptr : *found;
}

TraceContents read_contents(const TraceReader& reader, const TraceContents& before) {
    TraceContents all;
    for (const std::filesystem::path& file : reader.files()) {
        all.files << path_text(file);
    }
    all.trainings = reader.trainings();
    all.annotationsStamp = stamp_of_annotations(annotations_path(reader.path()));
    const bool annotated = all.annotationsStamp != before.annotationsStamp;
    std::vector<std::shared_ptr<RunContents>> read;
    for (RunInfo& info : reader.runs()) {
        const auto known = before.run(info.id);
        if (known && !annotated && info.complete && same_info(known->info, info)) {
            all.runs.push_back(known);
            continue;
        }
        auto run = std::make_shared<RunContents>();
        run->sequences = reader.sequences(info.id);
        run->signals = reader.signal_infos(info.id);
        run->faults = reader.faults(info.id);
        run->info = std::move(info);
        read.push_back(run);
        all.runs.push_back(std::move(run));
    }
    if (all.annotationsStamp != 0) {
        note_annotations(reader, read);
    }
    for (auto& run : all.runs) {
        if (const auto known = before.run(run->info.id); known && same_run(*known, *run)) {
            run = known;
        }
    }
    return all;
}

bool same_trainings(const std::vector<TrainingInfo>& a, const std::vector<TrainingInfo>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const TrainingInfo& x, const TrainingInfo& y) {
                          return x.id == y.id && x.name == y.name && x.step == y.step &&
                                 x.seconds == y.seconds && x.complete == y.complete && x.fault == y.fault;
                      });
}

} // namespace ponderscope
