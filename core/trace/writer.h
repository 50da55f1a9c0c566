// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Appends runs to a trace file. A thread of its own holds the only write connection; the calls below hand over values and return
/// (they block only while more than `max_queued_bytes` wait). One writer a file. Calls come from one thread.
///
/// A failure on the writer thread (disk full, no permission) is rethrown as EnvironmentError by the next call or by finish();
/// everything flushed before it stays readable. Finished sequences survive kill -9.
class TraceWriter {
public:
    struct Options {
        std::size_t max_queued_bytes = 256u << 20;
        bool append = true; ///< add runs to an existing trace; false: an existing file is an InputError
    };

    /// Creates or opens \p path. InputError: another kind of file, a newer version, a folder that does not exist.
    explicit TraceWriter(const std::filesystem::path& path);
    TraceWriter(const std::filesystem::path& path, const Options& options);
    ~TraceWriter(); ///< what is unfinished stays marked partial; never throws
    TraceWriter(const TraceWriter&) = delete;
    TraceWriter& operator=(const TraceWriter&) = delete;

    /// Starts a run; returns its id. A name that exists already gets " (2)" and so on. \p signals: what will be recorded.
    std::int64_t begin_run(RunInfo info, std::vector<SignalInfo> signals);
    /// Starts the next sequence of the current run. \p text may be empty (ids only).
    std::int64_t begin_sequence(std::string title, std::string text);
    /// The next tokens of the current sequence, with their signals: pairs of name and chunk; every chunk covers exactly these tokens.
    void append(TokenColumns tokens, std::vector<std::pair<std::string, SignalChunk>> signals);
    void end_sequence();
    /// What each token id in the run stands for, so that a reader needs no tokenizer: candidates included. Call before end_run.
    void put_vocabulary(std::vector<std::pair<std::int32_t, std::string>> token_bytes);
    void end_run(double seconds);
    /// Waits until all is on disk. Throws what the writer thread met.
    void finish();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ponderscope
