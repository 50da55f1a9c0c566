// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/trace_contents.h"

#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/remote/host.h"
#include "core/trace/reader.h"
#include "core/trace/rows.h"
#include "core/trace/tools/annotations.h"
#include "views/common/paths.h"

#include <algorithm>

namespace ponderscope {

namespace {

/// A number that changes when the annotations are written again; 0: there are none.
qint64 stamp_of_annotations(const std::filesystem::path& path) {
    if (remote::is_remote(path)) {
        return remote::look(path).times[0];
    }
    std::error_code error;
    const auto written = std::filesystem::last_write_time(path, error);
    return error ? 0 : written.time_since_epoch().count() | 1;
}

/// Adds faults to the runs whose annotations do not fit or cannot be read.
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
    } catch (const Error& fault) { // a damaged or locked annotations file: the trace stays usable
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
    const auto found = std::lower_bound(runs.begin(), runs.end(), id,
                                        [](const auto& one, qint64 due) { return one->info.id < due; });
    return found == runs.end() || (*found)->info.id != id ? nullptr : *found;
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

namespace {

/// Tokens per slice. A read can stop between slices.
constexpr std::int64_t slice_tokens = 1 << 16;

template <typename T>
void append_to(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

/// The annotations that fit the run's tokens. None if the file cannot be read: read_contents reports that.
std::vector<TokenAnnotation> read_annotations(const TraceReader& reader,
                                              const std::optional<AnnotationReader>& annotations,
                                              const RunKey& key, qint64 sequence, std::size_t tokens) {
    std::vector<TokenAnnotation> read;
    try {
        for (const RunInfo& run : annotations ? reader.runs() : std::vector<RunInfo>()) {
            for (const AnnotationInfo& info :
                 run.id == key.run ? annotations->fitting(run) : std::vector<AnnotationInfo>()) {
                TokenAnnotation one{QString::fromStdString(info.name), info.category, {}, {}};
                for (const std::string& name : info.classes) {
                    one.classes << QString::fromStdString(name);
                }
                one.values = annotations->values(info, sequence, 0, static_cast<std::int64_t>(tokens));
                read.push_back(std::move(one));
            }
        }
    } catch (const Error&) {
        read.clear();
    }
    return read;
}

} // namespace

std::optional<AnnotationReader> open_annotations(const TraceReader& reader) {
    try {
        return AnnotationReader::beside(reader.path());
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::shared_ptr<const SequenceData> read_sequence(const TraceReader& reader,
                                                  const std::optional<AnnotationReader>& annotations,
                                                  const RunKey& run, qint64 sequence,
                                                  const std::shared_ptr<const SequenceData>& old,
                                                  const std::atomic<bool>& stopped) {
    auto data = std::make_shared<SequenceData>();
    if (old) {
        *data = *old;
    } else {
        data->run = run;
        data->sequence = sequence;
        data->text = reader.text(run.run, sequence);
    }
    while (!stopped) {
        const auto first = static_cast<std::int64_t>(data->tokens.size());
        const TokenColumns slice = reader.tokens(run.run, sequence, first, first + slice_tokens);
        schema::each_token_field(
            [&](const auto& field) { append_to(data->tokens.*field.values, slice.*field.values); });
        if (static_cast<std::int64_t>(slice.size()) < slice_tokens) {
            data->annotations = read_annotations(reader, annotations, run, sequence, data->tokens.size());
            return data;
        }
    }
    return nullptr;
}

ReadSignal read_signal(const TraceReader& reader, const RunKey& run, qint64 sequence, const std::string& name,
                       const std::shared_ptr<const SignalChunk>& old, const std::atomic<bool>& stopped) {
    std::shared_ptr<SignalChunk> chunk = old ? std::make_shared<SignalChunk>(*old) : nullptr;
    while (!stopped) {
        const std::int64_t first = chunk ? chunk->shape.at(0) : 0;
        std::optional<SignalChunk> slice =
            reader.signal(run.run, sequence, name, first, first + slice_tokens);
        const std::int64_t count = slice && !slice->shape.empty() ? slice->shape[0] : 0;
        if (count > 0 && !chunk) {
            chunk = std::make_shared<SignalChunk>(std::move(*slice));
        } else if (count > 0) {
            const bool fits =
                slice->dtype == chunk->dtype && std::equal(slice->shape.begin() + 1, slice->shape.end(),
                                                           chunk->shape.begin() + 1, chunk->shape.end());
            if (!fits) {
                throw InputError(ErrorId::trace_damaged, reader.path(),
                                 "chunks of signal '" + name + "' with one shape and type",
                                 "several shapes or types", "record the run again");
            }
            chunk->shape[0] += count;
            append_to(chunk->data, slice->data);
        }
        if (count < slice_tokens) {
            return {false, chunk};
        }
    }
    return {true, nullptr};
}

} // namespace ponderscope
