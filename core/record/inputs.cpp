// SPDX-License-Identifier: GPL-3.0-or-later
// Makes sequences from texts, prompts, rows of ids and recorded runs.
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/checkpoint/safetensors.h"
#include "core/record/recorded_sequences.h"
#include "core/record/session.h"
#include "core/trace/reader.h"
#include "core/trace/recorded_choices.h"

#include <limits>
#include <map>

namespace ponderscope {
namespace {

SequenceInput encode(std::string text, const Tokenizer& tokenizer, const TextReading& reading) {
    SequenceInput sequence;
    sequence.set_tokens(reading.encode(tokenizer, text));
    sequence.text = std::move(text);
    return sequence;
}

std::vector<std::int32_t> row_from_json(const nlohmann::json& row, const std::filesystem::path& file) {
    std::vector<std::int32_t> ids;
    ids.reserve(row.size());
    for (const nlohmann::json& id : row) {
        if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
            throw InputError(ErrorId::text_ids, file, "token ids, whole numbers from 0", describe(id),
                             "write rows as in [[1, 2, 3], [4, 5]]");
        }
        ids.push_back(id.get<std::int32_t>());
    }
    return ids;
}

std::vector<std::vector<std::int32_t>> ids_from_json(const std::filesystem::path& file) {
    const nlohmann::json document = read_json_file(file);
    if (!document.is_array() || document.empty()) {
        throw InputError(ErrorId::text_ids, file, "a list of rows of token ids", describe(document),
                         "write rows as in [[1, 2, 3], [4, 5]]");
    }
    std::vector<std::vector<std::int32_t>> rows;
    if (!document.front().is_array()) {
        rows.push_back(row_from_json(document, file));
        return rows;
    }
    for (const nlohmann::json& row : document) {
        if (!row.is_array()) {
            throw InputError(ErrorId::text_ids, file, "rows of token ids only", describe(row),
                             "write rows as in [[1, 2, 3], [4, 5]]");
        }
        rows.push_back(row_from_json(row, file));
    }
    return rows;
}

std::vector<std::vector<std::int32_t>> ids_from_safetensors(const std::filesystem::path& path) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    const TensorView* tensor = file.find("input_ids");
    if (tensor == nullptr) {
        throw InputError(ErrorId::text_ids, path, "a tensor input_ids", "no such tensor",
                         "save the ids as input_ids");
    }
    if (tensor->shape.empty() || tensor->shape.size() > 2) {
        throw InputError(ErrorId::text_ids, path, "input_ids of shape [T] or [B, T]",
                         std::to_string(tensor->shape.size()) + " axes", "reshape input_ids");
    }
    SignalChunk chunk;
    chunk.dtype = tensor->dtype;
    chunk.shape = tensor->shape;
    chunk.data.assign(tensor->bytes.begin(), tensor->bytes.end());
    const std::vector<std::int64_t> values = to_integers(chunk);
    const std::size_t length = static_cast<std::size_t>(tensor->shape.back());
    std::vector<std::vector<std::int32_t>> rows;
    for (std::size_t begin = 0; length > 0 && begin < values.size(); begin += length) {
        std::vector<std::int32_t>& row = rows.emplace_back();
        for (std::size_t at = begin; at < begin + length; ++at) {
            if (values[at] < 0 || values[at] > std::numeric_limits<std::int32_t>::max()) {
                throw InputError(ErrorId::text_ids, path, "token ids from 0 in input_ids",
                                 std::to_string(values[at]), "save the rows without padding");
            }
            row.push_back(static_cast<std::int32_t>(values[at]));
        }
    }
    return rows;
}

} // namespace

SequenceInput sequence_from_text_file(const std::filesystem::path& file, const Tokenizer& tokenizer,
                                      const TextReading& reading) {
    SequenceInput sequence = encode(read_text_file(file), tokenizer, reading);
    sequence.title = file.filename().string();
    return sequence;
}

SequenceInput sequence_from_prompt(const std::string& prompt, const Tokenizer& tokenizer,
                                   const TextReading& reading) {
    check_text(prompt, "The prompt");
    SequenceInput sequence = encode(prompt, tokenizer, reading);
    sequence.title = printable(prompt, 40);
    return sequence;
}

void attach_decoded_text(SequenceInput& sequence, const Tokenizer& tokenizer) {
    sequence.text.clear();
    sequence.begin.clear();
    sequence.end.clear();
    for (const std::int32_t id : sequence.ids) {
        sequence.begin.push_back(sequence.text.size());
        if (!tokenizer.is_special(id)) {
            sequence.text += tokenizer.token_bytes(id);
        }
        sequence.end.push_back(sequence.text.size());
    }
}

std::vector<std::vector<std::int32_t>> read_ids(const std::filesystem::path& file) {
    const bool tensors = file.extension() == ".safetensors";
    std::vector<std::vector<std::int32_t>> rows = tensors ? ids_from_safetensors(file) : ids_from_json(file);
    for (const std::vector<std::int32_t>& row : rows) {
        if (row.empty()) {
            throw InputError(ErrorId::text_empty, file, "at least one token id in every row", "an empty row",
                             "leave it out");
        }
    }
    if (rows.empty()) {
        throw InputError(ErrorId::text_empty, file, "at least one row of token ids", "none",
                         "write rows as in [[1, 2, 3], [4, 5]]");
    }
    return rows;
}

std::vector<SequenceInput> recorded_sequences(const TraceReader& trace, const RunInfo& run,
                                              const std::stop_token& stop, bool finished) {
    std::map<std::int64_t, std::vector<TextLabel>> labels;
    for (auto& [number, label] : trace.labels(run.id)) {
        labels[number].push_back(std::move(label));
    }
    const RecordedChoices chosen = recorded_choices(run);
    std::vector<SequenceInput> sequences;
    for (const SequenceInfo& info : trace.sequences(run.id)) {
        throw_if_stopped(stop);
        if (finished && !info.complete) {
            continue;
        }
        TokenColumns tokens = trace.tokens(run.id, info.number);
        if (tokens.size() < 2) {
            break; // the recording ended here
        }
        SequenceInput& sequence = sequences.emplace_back();
        sequence.title = info.title;
        sequence.group = info.group;
        sequence.labels = std::move(labels[info.number]);
        sequence.planned_length = chosen.planned_length(info.number);
        sequence.text = trace.text(run.id, info.number);
        sequence.ids = std::move(tokens.id);
        if (!sequence.text.empty()) {
            sequence.begin = std::move(tokens.begin);
            sequence.end = std::move(tokens.end);
            if (!info.complete) { // keep only the text of recorded tokens
                sequence.text.resize(std::min<std::size_t>(sequence.text.size(), sequence.end.back()));
                std::erase_if(sequence.labels,
                              [&](const TextLabel& label) { return label.end > sequence.text.size(); });
            }
        }
    }
    return sequences;
}

std::vector<SequenceInput> sequences_of(const RunReference& reference) {
    const TraceReader reader = TraceReader::open(reference.trace);
    const RunInfo run = find_run(reader, reference.run);
    std::vector<SequenceInput> sequences = recorded_sequences(reader, run, {}, true);
    if (sequences.empty()) {
        throw InputError(ErrorId::trace_run, reference.trace,
                         "a finished sequence in the run '" + run.name + "'", "none",
                         "wait until a sequence is finished, or name another run");
    }
    return sequences;
}

} // namespace ponderscope
