// SPDX-License-Identifier: GPL-3.0-or-later
// A trace as a database file: all that views and commands read of it, its page, `check`, a merge of what is
// sound, and a writer that appends to it.
#include "core/page/page.h"
#include "core/trace/digests.h"
#include "core/trace/tools/check.h"
#include "core/trace/tools/merge.h"
#include "core/trace/tools/summary.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/fuzz/harness/harness.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace {

using namespace ponderscope;

/// Each question by itself: what one of them refuses, the next may answer.
void read_sequence(const TraceReader& reader, const RunInfo& run, const SequenceInfo& sequence,
                   const std::vector<SignalInfo>& signals, std::uint64_t file_size) {
    fuzz::ask([&] { (void)reader.text(run.id, sequence.number); });
    fuzz::ask([&] {
        const TokenColumns tokens = reader.tokens(run.id, sequence.number);
        for (std::size_t i = 0; i < tokens.size(); ++i) { // what views rely on
            fuzz::require(tokens.begin[i] <= tokens.end[i], "a token ends before it begins");
            fuzz::require(tokens.end[i] <= file_size, "a token ends behind its text");
        }
    });
    for (const SignalInfo& signal : signals) {
        for (const auto& [begin, end] :
             {std::pair<std::int64_t, std::int64_t>{0, -1}, {100, 120}, {299, 300}}) {
            fuzz::ask([&, first = begin, last = end] {
                const auto chunk = reader.signal(run.id, sequence.number, signal.name, first, last);
                if (!chunk) {
                    return;
                }
                std::size_t bytes = size_of(chunk->dtype);
                for (const std::int64_t length : chunk->shape) {
                    bytes *= static_cast<std::size_t>(length);
                }
                fuzz::require(chunk->shape.size() == signal.axes.size(), "a shape that is not of its axes");
                fuzz::require(chunk->data.size() == bytes, "values that are not of their shape");
                (void)to_floats(*chunk);
            });
        }
    }
}

void read_everything(const std::filesystem::path& path) {
    fuzz::ask([&] {
        const TraceReader reader = TraceReader::open(path);
        fuzz::ask([&] { (void)trace_summary(reader); });
        fuzz::ask([&] { (void)trace_summary_json(reader).dump(); });
        for (const TrainingInfo& training : reader.trainings()) {
            fuzz::ask([&] { (void)reader.training_quantities(training.id); });
            fuzz::ask([&] { (void)reader.training_curves(training.id); });
        }
        for (const RunInfo& run : reader.runs()) {
            std::vector<SignalInfo> signals;
            fuzz::ask([&] { signals = reader.signal_infos(run.id); });
            fuzz::ask([&] { (void)reader.vocabulary(run.id); });
            fuzz::ask([&] { (void)reader.token_bytes(run.id, 7); });
            fuzz::ask([&] { (void)reader.faults(run.id); });
            fuzz::ask([&] { (void)reader.labels(run.id); });
            fuzz::ask([&] { (void)reader.shard(run.id); });
            fuzz::ask([&] {
                for (const SequenceInfo& sequence : reader.sequences(run.id)) {
                    read_sequence(reader, run, sequence, signals, std::filesystem::file_size(path));
                }
            });
        }
    });
}

/// What is packed is JSON and arrays of the lengths that it says.
void pack_page(const std::filesystem::path& path) {
    fuzz::ask([&] {
        const TraceReader trace = TraceReader::open(path);
        PageOptions options;
        options.max_tokens = 60;
        options.bootstrap.replicates = 20;
        const std::string packed = packed_page(trace, choose_page_runs(trace, {}), options);
        std::uint32_t length = 0;
        fuzz::require(packed.size() >= sizeof length, "no head");
        std::memcpy(&length, packed.data(), sizeof length);
        fuzz::require(length <= packed.size() - sizeof length, "a head longer than the page");
        const auto head = nlohmann::json::parse(packed.substr(sizeof length, length), nullptr, false);
        fuzz::require(head.is_object() && head.contains("runs"), "a head that is no JSON");
    });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto path = fuzz::put("a.ponder", fuzz::text_of(data, size));
    read_everything(path);
    fuzz::ask([&] { (void)check_trace(path, 20); });
    const auto merged = fuzz::folder() / "merged.ponder";
    const std::uint32_t draw = crc32_of(std::as_bytes(std::span(data, size)));
    if (draw % 64 == 0) { // it takes as long as a hundred others
        fuzz::ask([&] { merge_runs({{path, ""}}, merged); });
    }
    if (draw % 16 == 1) {
        fuzz::ask([&] { testing::add_sample_run(path, "appended", 2, {50}, 20); });
    }
    if (draw % 16 == 2) { // a log that belongs to nothing
        fuzz::put("a.ponder-wal", fuzz::text_of(data, std::min<std::size_t>(size, 5000)));
        read_everything(path);
    }
    if (draw % 16 == 3) {
        pack_page(path);
    }
    std::error_code ignored;
    for (const char* suffix : {".ponder-wal", ".ponder-shm", ".ponder-journal"}) {
        std::filesystem::remove(fuzz::folder() / (std::string("a") + suffix), ignored);
    }
    std::filesystem::remove(merged, ignored);
    return 0;
}
