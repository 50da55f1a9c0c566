// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/trace_blocks.h"

#include "core/base/error.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <optional>

namespace ponderscope {
namespace {

/// Tokens read at a time, so that a read can be given up between slices.
constexpr std::int64_t slice_tokens = 1 << 16;

template <typename T>
void append_to(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

void append_columns(TokenColumns& to, const TokenColumns& from) {
    append_to(to.id, from.id);
    append_to(to.begin, from.begin);
    append_to(to.end, from.end);
    append_to(to.nll, from.nll);
    append_to(to.entropy, from.entropy);
    append_to(to.max_probability, from.max_probability);
    append_to(to.rank, from.rank);
    append_to(to.steps, from.steps);
    append_to(to.flops, from.flops);
}

/// Those that were made for the run's tokens. Of a file that cannot be read there are none: read_contents
/// says so.
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
        append_columns(data->tokens, slice);
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
                throw InputError(reader.path(),
                                 "one shape and type for the signal '" + name + "' of a sequence",
                                 "chunks that differ", "record the run again");
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
