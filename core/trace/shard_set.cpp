// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/shard_set.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/trace/shard.h"

#include <algorithm>
#include <set>

namespace ponderscope {

/// Where a sequence lies.
struct ShardSet::Place {
    std::size_t reader = 0;
    std::int64_t run = 0;    ///< in that shard
    std::int64_t number = 0; ///< of the sequence within that run
};

struct ShardSet::Run {
    RunInfo info; ///< of rank 0, with the totals of all
    std::int64_t batch = 0;
    std::vector<std::pair<std::size_t, std::int64_t>> shards; ///< by rank: reader, run in it
    // Made when it is first asked for, and again with sequences().
    mutable std::vector<Place> places; ///< of each sequence
    mutable std::vector<SequenceInfo> sequences;
    mutable bool indexed = false;
};

namespace {

struct FoundShard {
    std::size_t reader = 0;
    Recording what;
    ShardInfo place;
    std::filesystem::path whole; ///< what it was recorded to
};

std::string listed(const std::vector<std::int64_t>& ranks) {
    return joined(
        ranks, [](std::int64_t rank) { return std::to_string(rank); }, 10);
}

FoundShard look_at(const TraceReader& reader, std::size_t index) {
    const std::vector<RunInfo> runs = reader.runs();
    const std::optional<ShardInfo> place = runs.size() == 1 ? reader.shard(runs.front().id) : std::nullopt;
    if (!place || place->world < 2) {
        throw InputError(ErrorId::shard_mixed, reader.path(),
                         "a shard of a run that several processes recorded",
                         runs.empty() ? "a trace without any run" : "a trace that is whole",
                         "name it alone, or merge it with others without --join");
    }
    const std::optional<ShardName> name = parse_shard_name(reader.path());
    return {index,
            {runs.front(), reader.signal_infos(runs.front().id), place->batch},
            *place,
            name ? name->trace : reader.path().parent_path() / "shards"};
}

/// The shards of one run, by rank.
std::vector<FoundShard> in_order(const std::vector<FoundShard>& found,
                                 const std::vector<TraceReader>& readers) {
    const FoundShard& first = found.front();
    const auto path = [&](const FoundShard& shard) { return readers[shard.reader].path(); };
    std::vector<const FoundShard*> by_rank(static_cast<std::size_t>(first.place.world));
    for (const FoundShard& shard : found) {
        const std::string difference = first.place.world != shard.place.world
                                           ? "a world of " + std::to_string(first.place.world) +
                                                 ", and one of " + std::to_string(shard.place.world)
                                           : difference_of_recordings(first.what, shard.what);
        if (!difference.empty()) {
            throw InputError(ErrorId::shard_mixed, path(shard),
                             "a shard of the same run as " + path(first).filename().string(),
                             "one of another (" + difference + ")", "name the shards of one run");
        }
        const FoundShard*& here = by_rank[static_cast<std::size_t>(shard.place.rank)];
        if (here != nullptr) {
            throw InputError(ErrorId::shard_mixed, path(shard), "each shard once",
                             "shard " + std::to_string(shard.place.rank) + " a second time, beside " +
                                 path(*here).filename().string(),
                             "leave one of them out");
        }
        here = &shard;
    }
    std::vector<std::int64_t> missing;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
        if (by_rank[rank] == nullptr) {
            missing.push_back(static_cast<std::int64_t>(rank));
        }
    }
    if (!missing.empty()) {
        throw InputError(ErrorId::shard_missing,
                         path(first).parent_path() / (first.whole.stem().string() + ".r*.ponder"),
                         "all " + std::to_string(first.place.world) + " shards of the run",
                         "none of " + std::string(missing.size() == 1 ? "rank " : "ranks ") + listed(missing),
                         "record what is missing with --resume, or name these shards too");
    }
    std::vector<FoundShard> ordered;
    ordered.reserve(by_rank.size());
    for (const FoundShard* shard : by_rank) {
        ordered.push_back(*shard);
    }
    return ordered;
}

} // namespace

ShardSet::ShardSet(std::filesystem::path name, std::vector<TraceReader> shards)
    : name_(std::move(name)), readers_(std::move(shards)) {
    std::map<std::filesystem::path, std::vector<FoundShard>> by_name;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
        FoundShard found = look_at(readers_[i], i);
        const std::vector<std::string>& notices = readers_[i].notices();
        notices_.insert(notices_.end(), notices.begin(), notices.end());
        by_name[found.whole].push_back(std::move(found));
    }
    std::set<std::string> names;
    for (const auto& [whole, found] : by_name) {
        auto run = std::make_unique<Run>();
        for (const FoundShard& shard : in_order(found, readers_)) {
            run->shards.emplace_back(shard.reader, shard.what.run.id);
            if (run->shards.size() == 1) {
                run->info = shard.what.run;
                run->batch = shard.place.batch;
            }
        }
        run->info.id = static_cast<std::int64_t>(runs_.size()) + 1;
        const std::string wanted = run->info.name;
        for (int i = 2; !names.insert(run->info.name).second; ++i) {
            run->info.name = wanted + " (" + std::to_string(i) + ")";
        }
        runs_.push_back(std::move(run));
    }
}

ShardSet::~ShardSet() = default;

std::vector<std::filesystem::path> ShardSet::files() const {
    std::vector<std::filesystem::path> files;
    for (const TraceReader& reader : readers_) {
        files.push_back(reader.path());
    }
    return files;
}

std::shared_ptr<const void> ShardSet::pin_snapshot() const {
    auto all = std::make_shared<std::vector<std::shared_ptr<const void>>>();
    for (const TraceReader& reader : readers_) {
        all->push_back(reader.pin_snapshot());
    }
    return all;
}

const ShardSet::Run& ShardSet::run(std::int64_t id) const {
    if (id < 1 || id > static_cast<std::int64_t>(runs_.size())) {
        throw InputError(name_, "run " + std::to_string(id), "none",
                         "choose one from the list of ponderscope inspect");
    }
    return *runs_[static_cast<std::size_t>(id - 1)];
}

std::vector<RunInfo> ShardSet::runs() const {
    std::vector<RunInfo> runs;
    for (const std::unique_ptr<Run>& run : runs_) {
        RunInfo all = run->info;
        all.complete = true;
        all.seconds = 0;
        for (const auto& [reader, id] : run->shards) {
            const RunInfo shard = readers_[reader].runs().front();
            all.complete = all.complete && shard.complete;
            all.seconds = std::max(all.seconds, shard.seconds); // they ran side by side
            all.started = std::min(all.started, shard.started);
        }
        if (!all.complete) { // it may have grown
            make_index(*run);
        }
        // Totals of the sequences that can be read, added in the order in which one process would add them.
        static_cast<TokenTotals&>(all) = {};
        for (const SequenceInfo& sequence : index_of(*run).sequences) {
            all += sequence;
        }
        all.sequences = static_cast<std::int64_t>(run->sequences.size());
        runs.push_back(std::move(all));
    }
    return runs;
}

const ShardSet::Run& ShardSet::index_of(const Run& run) const {
    if (!run.indexed) {
        make_index(run);
    }
    return run;
}

void ShardSet::make_index(const Run& run) const {
    run.indexed = true;
    run.places.clear();
    run.sequences.clear();
    std::vector<std::pair<SequenceInfo, Place>> found;
    for (const auto& [reader, id] : run.shards) {
        for (SequenceInfo& info : readers_[reader].sequences(id)) {
            const Place place{reader, id, info.number};
            found.emplace_back(std::move(info), place);
        }
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
        return a.first.joined_number < b.first.joined_number;
    });
    for (auto& [info, place] : found) {
        const auto number = static_cast<std::int64_t>(run.sequences.size());
        if (info.joined_number < number) {
            throw InputError(
                ErrorId::trace_damaged, readers_[place.reader].path(), "sequences that no other shard has",
                info.joined_number < 0 ? "one without a number in the run"
                                       : "sequence " + std::to_string(info.joined_number) + " a second time",
                "take the shards from their source again");
        }
        if (info.joined_number > number) {
            break; // recorded ahead of what is missing
        }
        const bool ended = info.complete;
        info.run = run.info.id;
        info.number = number;
        info.joined_number = -1;
        run.sequences.push_back(std::move(info));
        run.places.push_back(place);
        if (!ended) {
            break;
        }
    }
}

std::optional<ShardInfo> ShardSet::shard(std::int64_t id) const {
    return ShardInfo{0, 1, run(id).batch};
}

std::vector<SequenceInfo> ShardSet::sequences(std::int64_t id) const {
    const Run& of = run(id);
    make_index(of);
    return of.sequences;
}

std::vector<SignalInfo> ShardSet::signal_infos(std::int64_t id) const {
    const auto& [reader, there] = run(id).shards.front();
    return readers_[reader].signal_infos(there);
}

const ShardSet::Place& ShardSet::place_of(std::int64_t id, std::int64_t sequence) const {
    const Run& of = index_of(run(id));
    if (sequence < 0 || sequence >= static_cast<std::int64_t>(of.places.size())) {
        throw InputError(name_, "sequence " + std::to_string(sequence) + " of run " + std::to_string(id),
                         "none", "choose one from the list of ponderscope inspect");
    }
    return of.places[static_cast<std::size_t>(sequence)];
}

std::vector<std::pair<std::int64_t, TextLabel>> ShardSet::labels(std::int64_t id) const {
    const Run& of = index_of(run(id));
    std::map<std::pair<std::size_t, std::int64_t>, std::vector<TextLabel>> in_shard;
    for (const auto& [reader, there] : of.shards) {
        for (auto& [number, label] : readers_[reader].labels(there)) {
            in_shard[{reader, number}].push_back(std::move(label));
        }
    }
    std::vector<std::pair<std::int64_t, TextLabel>> labels;
    for (std::size_t sequence = 0; sequence < of.places.size(); ++sequence) {
        const Place& place = of.places[sequence];
        for (TextLabel& label : in_shard[{place.reader, place.number}]) {
            labels.emplace_back(static_cast<std::int64_t>(sequence), std::move(label));
        }
    }
    return labels;
}

TokenColumns ShardSet::tokens(std::int64_t id, std::int64_t sequence, std::int64_t begin,
                              std::int64_t end) const {
    const Place& place = place_of(id, sequence);
    return readers_[place.reader].tokens(place.run, place.number, begin, end);
}

std::optional<SignalChunk> ShardSet::signal(std::int64_t id, std::int64_t sequence, const std::string& name,
                                            std::int64_t begin, std::int64_t end) const {
    const Place& place = place_of(id, sequence);
    return readers_[place.reader].signal(place.run, place.number, name, begin, end);
}

std::string ShardSet::text(std::int64_t id, std::int64_t sequence) const {
    const Place& place = place_of(id, sequence);
    return readers_[place.reader].text(place.run, place.number);
}

std::string ShardSet::token_bytes(std::int64_t id, std::int32_t token) const {
    for (const auto& [reader, there] : run(id).shards) {
        if (std::string bytes = readers_[reader].token_bytes(there, token); !bytes.empty()) {
            return bytes;
        }
    }
    return {};
}

std::vector<std::pair<std::int32_t, std::string>> ShardSet::vocabulary(std::int64_t id) const {
    std::map<std::int32_t, std::string> words;
    for (const auto& [reader, there] : run(id).shards) {
        for (auto& [token, bytes] : readers_[reader].vocabulary(there)) {
            words.emplace(token, std::move(bytes));
        }
    }
    return {words.begin(), words.end()};
}

std::vector<FaultInfo> ShardSet::faults(std::int64_t id) const {
    const Run& of = index_of(run(id));
    std::vector<FaultInfo> faults;
    for (std::size_t rank = 0; rank < of.shards.size(); ++rank) {
        const auto& [reader, there] = of.shards[rank];
        for (FaultInfo& fault : readers_[reader].faults(there)) {
            const auto place =
                std::find_if(of.places.begin(), of.places.end(), [&, shard = reader](const Place& one) {
                    return one.reader == shard && one.number == fault.sequence;
                });
            const bool found = fault.sequence >= 0 && place != of.places.end();
            faults.push_back({id, found ? place - of.places.begin() : -1, fault.time,
                              "rank " + std::to_string(rank) + ": " + fault.message});
        }
    }
    return faults;
}

} // namespace ponderscope
