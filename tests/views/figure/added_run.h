// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/reader.h"
#include "core/trace/writer.h"
#include "tests/support/packed.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope::testing {

/// Adds a run like the first one of \p trace, but for what \p change makes of it, with signals that
/// \p chunks_of makes of each sequence's tokens, which it may change. \p task: each sequence is a document of
/// it, its second half the only option.
inline void
add_run(const std::filesystem::path& trace, const std::function<void(RunInfo&)>& change,
        const std::vector<SignalInfo>& announced,
        const std::function<std::vector<std::pair<std::string, SignalChunk>>(TokenColumns&)>& chunks_of,
        const std::string& task = {}) {
    const TraceReader reader = TraceReader::open(trace);
    RunInfo info = reader.runs().front();
    const std::int64_t base = info.id;
    change(info);
    TraceWriter writer(trace);
    writer.begin_run(info, announced);
    for (const SequenceInfo& sequence : reader.sequences(base)) {
        TokenColumns tokens = reader.tokens(base, sequence.number);
        auto chunks = chunks_of(tokens);
        const std::string text = reader.text(base, sequence.number);
        writer.begin_sequence(sequence.title, text,
                              task.empty() ? "" : task + "/" + std::to_string(sequence.number));
        if (!task.empty()) {
            writer.put_labels({{text.size() / 2, text.size(), "right 0"}});
        }
        writer.append(std::move(tokens), std::move(chunks));
        writer.end_sequence();
    }
    writer.put_vocabulary(reader.vocabulary(base));
    writer.end_run(1);
    writer.finish();
}

} // namespace ponderscope::testing
