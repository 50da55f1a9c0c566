// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/resume.h"

#include "core/base/error.h"
#include "core/trace/reader.h"

#include <string_view>

namespace ponderscope {
namespace {

/// "x (2)", which a writer calls a second x.
bool is_another_of(const std::string& name, const std::string& wanted) {
    if (!name.starts_with(wanted + " (") || !name.ends_with(')')) {
        return false;
    }
    const std::string_view number = std::string_view(name).substr(wanted.size() + 2);
    return number.size() > 1 && number.find_first_not_of("0123456789") == number.size() - 1;
}

/// Empty, or in what a run differs from the one that is wanted.
std::string difference_from(const TraceReader& reader, const RunInfo& run, const Recording& wanted,
                            const ShardInfo& place) {
    const std::optional<ShardInfo> was = reader.shard(run.id);
    std::string difference =
        difference_of_recordings({run, reader.signal_infos(run.id), was ? was->batch : 0}, wanted);
    if (difference.empty() && was && (was->rank != place.rank || was->world != place.world)) {
        difference = "rank " + std::to_string(was->rank) + " of " + std::to_string(was->world) +
                     ", and rank " + std::to_string(place.rank) + " of " + std::to_string(place.world);
    }
    return difference;
}

} // namespace

std::optional<RunInfo> run_to_resume(const std::filesystem::path& trace, const Recording& wanted,
                                     const ShardInfo& place) {
    const TraceReader reader = TraceReader::open(trace);
    std::optional<RunInfo> found;
    std::string difference;
    // The latest that fits; of those, one that was cut off.
    const auto rank = [](const RunInfo& run, const std::string& differs) {
        return (differs.empty() ? 2 : 0) + (run.complete ? 0 : 1);
    };
    for (RunInfo& run : reader.runs()) {
        const bool named = run.name == wanted.run.name || is_another_of(run.name, wanted.run.name);
        if (!named && (place.world == 1 || found)) {
            continue;
        }
        std::string differs = difference_from(reader, run, wanted, place);
        if (!found || rank(run, differs) >= rank(*found, difference)) {
            found = std::move(run);
            difference = std::move(differs);
        }
    }
    if (!found) {
        return found;
    }
    if (!difference.empty()) {
        throw InputError(ErrorId::resume_differs, trace,
                         "a run of these texts, weights and options to resume",
                         "run \"" + found->name +
                             "\", which differs (first as it was recorded, then as it is "
                             "resumed: " +
                             difference + ")",
                         "resume with the options of that run, or choose another --name");
    }
    TokenTotals finished;
    for (const SequenceInfo& sequence : reader.sequences(found->id)) {
        if (!sequence.complete) {
            break;
        }
        finished += sequence;
    }
    static_cast<TokenTotals&>(*found) = finished;
    return found;
}

} // namespace ponderscope
