// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/reader.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/remote/address.h"
#include "core/trace/shard_set.h"
#include "core/trace/trace_file.h"

#include <algorithm>
#include <filesystem>

namespace ponderscope {

TraceReader TraceReader::open(const std::filesystem::path& path) {
    if (const std::vector<std::filesystem::path> shards = find_shards(path); !shards.empty()) {
        return open_shards(shards, path);
    }
    return TraceReader(FileTrace::open(path));
}

TraceReader TraceReader::open_shards(const std::vector<std::filesystem::path>& files,
                                     const std::filesystem::path& name) {
    std::vector<TraceReader> readers;
    readers.reserve(files.size());
    for (const std::filesystem::path& file : files) {
        std::unique_ptr<FileTrace> trace = FileTrace::open(file);
        // Together they remember about as many pages as one file does.
        const std::size_t kilobytes = std::max<std::size_t>(512, 16384 / files.size());
        trace->database().execute("PRAGMA cache_size=-" + std::to_string(kilobytes));
        readers.emplace_back(std::move(trace));
    }
    return TraceReader(std::make_unique<ShardSet>(name, std::move(readers)));
}

TraceReader TraceReader::another() const {
    const std::vector<std::filesystem::path> all = files();
    return all.size() == 1 && all.front() == path() ? open(path()) : open_shards(all, path());
}

RunReference parse_run_reference(const std::string& text) {
    // '#' is a legal character in names of files and of runs: the first one behind something that exists
    // separates them. On another machine, and where nothing exists, the name itself must tell.
    namespace fs = std::filesystem;
    const auto split = [&](std::size_t hash) {
        return RunReference{text.substr(0, hash), text.substr(hash + 1)};
    };
    std::error_code error;
    const bool elsewhere = remote::is_remote(text);
    if (!elsewhere && fs::exists(text, error)) {
        return {text, {}};
    }
    for (std::size_t hash = text.find('#'); !elsewhere && hash != std::string::npos;
         hash = text.find('#', hash + 1)) {
        const std::string trace = text.substr(0, hash);
        // A folder is one of shards only where nothing in it is named.
        if (fs::is_directory(trace, error) ? text.find('/', hash) == std::string::npos
                                           : fs::exists(trace, error)) {
            return split(hash);
        }
    }
    const std::size_t last = text.rfind('#');
    constexpr std::string_view suffix = ".ponder";
    const bool whole = text.find('/', last) != std::string::npos ||
                       (text.ends_with(suffix) && !text.substr(0, last).ends_with(suffix));
    if (last == 0 || last == std::string::npos || (elsewhere && whole)) {
        return {text, {}};
    }
    const std::size_t first = text.find(std::string(suffix) + "#");
    return split(first != std::string::npos ? first + suffix.size() : last);
}

namespace {

/// Whether a policy was rerun on \p source to make \p run: `policy --rerun` names it "SOURCE POLICY".
bool is_named_rerun_of(const RunInfo& run, const RunInfo& source) {
    return run.id != source.id && !run.policy.empty() && run.text_digest == source.text_digest &&
           run.checkpoint_digest == source.checkpoint_digest &&
           run.name.starts_with(source.name + " " + run.policy);
}

} // namespace

RunInfo find_run(const TraceReader& reader, const std::string& name) {
    const std::vector<RunInfo> runs = reader.runs();
    if (name.empty()) {
        std::vector<const RunInfo*> originals;
        for (const RunInfo& run : runs) {
            if (std::none_of(runs.begin(), runs.end(),
                             [&](const RunInfo& source) { return is_named_rerun_of(run, source); })) {
                originals.push_back(&run);
            }
        }
        if (originals.size() == 1) {
            return *originals.front();
        }
    }
    for (const RunInfo& run : runs) {
        if (!name.empty() && run.name == name) {
            return run;
        }
    }
    if (const auto number = parse_number<std::int64_t>(name)) {
        for (const RunInfo& run : runs) {
            if (run.id == *number) {
                return run;
            }
        }
    }
    if (runs.empty()) {
        throw InputError(ErrorId::trace_run, reader.path(), "a run", "a trace without any",
                         "record one into it");
    }
    throw InputError(ErrorId::trace_run, reader.path(),
                     name.empty() ? "the name of a run" : "a run named " + name,
                     "the runs " + joined(runs, &RunInfo::name, 20),
                     "write one of them after #, as in " + reader.short_name_of(runs.front()));
}

} // namespace ponderscope
