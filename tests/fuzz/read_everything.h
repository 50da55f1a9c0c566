// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "core/trace/tools/summary.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <string>

namespace ponderscope::fuzz {

/// Asks a trace for everything that a view or a command asks for. Sentences are an answer; \p broken is told
/// of everything else, and of answers that break what the reader promises. Returns whether nothing was
/// refused.
inline bool read_everything(const std::filesystem::path& path,
                            const std::function<void(const std::string&)>& broken) {
    bool whole = true;
    const auto attempt = [&](auto&& ask) {
        try {
            ask();
        } catch (const Error& error) {
            whole = false;
            if (*error.what() == '\0') {
                broken("a refusal without a word");
            }
        } catch (const std::exception& error) {
            broken(error.what());
        }
    };
    const auto expect = [&](bool holds, const char* promise) {
        if (!holds) {
            broken(promise);
        }
    };
    attempt([&] {
        const TraceReader reader = TraceReader::open(path);
        attempt([&] { (void)trace_summary(reader); });
        attempt([&] { (void)trace_summary_json(reader).dump(); });
        for (const TrainingInfo& training : reader.trainings()) {
            attempt([&] { (void)reader.training_quantities(training.id); });
            attempt([&] { (void)reader.training_curves(training.id); });
        }
        for (const RunInfo& run : reader.runs()) {
            std::vector<SignalInfo> signals;
            attempt([&] { signals = reader.signal_infos(run.id); });
            attempt([&] { (void)reader.vocabulary(run.id); });
            attempt([&] { (void)reader.token_bytes(run.id, 7); });
            attempt([&] { (void)reader.faults(run.id); });
            attempt([&] { (void)reader.labels(run.id); });
            attempt([&] { (void)reader.shard(run.id); });
            std::vector<SequenceInfo> sequences;
            attempt([&] { sequences = reader.sequences(run.id); });
            for (const SequenceInfo& sequence : sequences) {
                attempt([&] { (void)reader.text(run.id, sequence.number); });
                attempt([&] {
                    const TokenColumns tokens = reader.tokens(run.id, sequence.number);
                    for (std::size_t i = 0; i < tokens.size(); ++i) { // what views rely on
                        expect(tokens.begin[i] <= tokens.end[i], "a token ends before it begins");
                        expect(tokens.end[i] <= std::filesystem::file_size(path),
                               "a token ends behind its text");
                    }
                });
                for (const SignalInfo& signal : signals) {
                    for (const auto& part :
                         {std::pair<std::int64_t, std::int64_t>{0, -1}, {100, 120}, {299, 300}}) {
                        attempt([&] {
                            const auto chunk =
                                reader.signal(run.id, sequence.number, signal.name, part.first, part.second);
                            if (!chunk) {
                                return;
                            }
                            std::size_t bytes = size_of(chunk->dtype);
                            for (const std::int64_t length : chunk->shape) {
                                bytes *= static_cast<std::size_t>(length);
                            }
                            expect(chunk->shape.size() == signal.axes.size(),
                                   "a shape that is not of its axes");
                            expect(chunk->data.size() == bytes, "values that are not of their shape");
                            (void)to_floats(*chunk);
                        });
                    }
                }
            }
        }
    });
    return whole;
}

} // namespace ponderscope::fuzz
