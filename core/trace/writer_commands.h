// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "core/trace/shard.h"
#include "core/trace/store.h"
#include "core/trace/training_records.h"

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// What TraceWriter's calls hand over to its thread: the calls of TraceStore with their arguments.
namespace ponderscope::writer_commands {

struct BeginRun {
    RunInfo info;
    std::vector<SignalInfo> signals;
    std::int64_t tokenizer;
    std::optional<ShardInfo> shard;
};
struct ResumeRun {
    std::int64_t run;
    std::vector<SignalInfo> signals;
    std::promise<TraceStore::Resumed> answer;
};
struct BeginSequence {
    std::int64_t id;
    std::string title;
    std::string text;
    std::string group;
    std::optional<PieceInfo> piece;
};
struct Append {
    TokenColumns tokens;
    std::vector<std::pair<std::string, SignalChunk>> signals;
};
struct PutLabels {
    std::vector<TextLabel> labels;
};
struct PutTextDigest {
    std::string digest;
};
struct EndSequence {
    bool complete;
};
struct PutVocabulary {
    std::int64_t tokenizer;
    std::vector<std::pair<std::int32_t, std::string>> token_bytes;
};
struct PutFault {
    std::int64_t run;
    std::int64_t sequence;
    std::string time;
    std::string message;
};
struct PutSignalSums {
    std::string signal;
    SignalSums sums;
};
struct EndRun {
    double seconds;
    bool complete;
};
struct BeginTraining {
    TrainingInfo info;
    std::vector<TrainingQuantity> quantities;
};
struct PutPoints {
    std::int64_t training;
    TrainingMoment moment;
    std::vector<TrainingValue> values;
};
struct EndTraining {
    std::int64_t training;
    bool complete;
    std::string fault;
};
using Command =
    std::variant<BeginRun, ResumeRun, BeginSequence, Append, PutLabels, PutTextDigest, EndSequence,
                 PutVocabulary, PutFault, PutSignalSums, EndRun, BeginTraining, PutPoints, EndTraining>;

template <class... Handlers>
struct Overloaded : Handlers... {
    using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>; // compilers before Clang 17 do not find it themselves

/// What must survive from its moment on: it waits for nothing but the disk.
inline bool ends_something(const Command& command) {
    return !(std::holds_alternative<BeginSequence>(command) || std::holds_alternative<Append>(command) ||
             std::holds_alternative<PutLabels>(command) || std::holds_alternative<PutTextDigest>(command) ||
             std::holds_alternative<PutVocabulary>(command) || std::holds_alternative<PutFault>(command));
}

/// Bytes that a command holds, about.
inline std::size_t weight(const Command& command) {
    std::size_t bytes = sizeof(Command);
    if (const auto* append = std::get_if<Append>(&command)) {
        bytes += append->tokens.size() * 48;
        for (const auto& [name, chunk] : append->signals) {
            bytes += chunk.data.size();
        }
    } else if (const auto* sequence = std::get_if<BeginSequence>(&command)) {
        bytes += sequence->text.size();
    } else if (const auto* vocabulary = std::get_if<PutVocabulary>(&command)) {
        bytes += vocabulary->token_bytes.size() * 48;
    } else if (const auto* labels = std::get_if<PutLabels>(&command)) {
        bytes += labels->labels.size() * sizeof(TextLabel);
    } else if (const auto* points = std::get_if<PutPoints>(&command)) {
        bytes += points->values.size() * sizeof(TrainingValue);
    }
    return bytes;
}

} // namespace ponderscope::writer_commands
