// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/reader.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/remote/address.h"
#include "core/trace/trace_file.h"

#include <algorithm>
#include <map>
#include <set>

namespace ponderscope {

/// A run in one of the files.
struct TraceReader::Part {
    std::size_t file = 0;
    std::int64_t run = 0;
};

/// The location of a sequence.
struct TraceReader::Place {
    Part part;
    std::int64_t number = 0; ///< number of the sequence in that run
};

/// A run whose shards are read as one.
struct TraceReader::JoinedRun {
    RunInfo info; ///< info of rank 0; runs() sets the totals
    std::int64_t batch = 0;
    std::vector<Part> parts; ///< by rank
    // Built at the first use, and again by sequences():
    mutable std::vector<Place> places; ///< for each sequence
    mutable std::vector<SequenceInfo> sequences;
    mutable bool indexed = false;
};

namespace {

struct FoundShard {
    std::size_t file = 0;
    Recording what;
    ShardInfo place;
    std::filesystem::path whole; ///< the whole trace, as named when recording
};

std::string listed(const std::vector<std::int64_t>& ranks) {
    return joined(
        ranks, [](std::int64_t rank) { return std::to_string(rank); }, 10);
}

FoundShard look_at(const FileTrace& file, std::size_t index) {
    const std::vector<RunInfo> runs = file.runs();
    const std::optional<ShardInfo> place = runs.size() == 1 ? file.shard(runs.front().id) : std::nullopt;
    if (!place || place->world < 2) {
        throw InputError(ErrorId::shard_mixed, file.path(),
                         "a shard of a run that several processes recorded",
                         runs.empty() ? "a trace without any run" : "a whole trace",
                         "name it alone, or merge it with others without --join");
    }
    const std::optional<ShardName> name = parse_shard_name(file.path());
    return {index,
            {runs.front(), file.signal_infos(runs.front().id), place->batch},
            *place,
            name ? name->trace : file.path().parent_path() / "shards"};
}

/// The shards of one run, by rank.
std::vector<FoundShard> in_order(const std::vector<FoundShard>& found,
                                 const std::vector<std::unique_ptr<const FileTrace>>& files) {
    const FoundShard& first = found.front();
    const auto path = [&](const FoundShard& shard) { return files[shard.file]->path(); };
    std::vector<const FoundShard*> by_rank(static_cast<std::size_t>(first.place.world));
    for (const FoundShard& shard : found) {
        const std::string difference = first.place.world != shard.place.world
                                           ? "a world of " + std::to_string(first.place.world) +
                                                 ", and one of " + std::to_string(shard.place.world)
                                           : difference_of_recordings(first.what, shard.what);
        if (!difference.empty()) {
            throw InputError(ErrorId::shard_mixed, path(shard),
                             "a shard of the same run as " + path(first).filename().string(),
                             "a shard of another run (" + difference + ")", "name the shards of one run");
        }
        const FoundShard*& here = by_rank[static_cast<std::size_t>(shard.place.rank)];
        if (here != nullptr) {
            throw InputError(ErrorId::shard_mixed, path(shard), "each shard once",
                             "shard " + std::to_string(shard.place.rank) + " a second time, beside " +
                                 path(*here).filename().string(),
                             "leave one of the two out");
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
        throw InputError(
            ErrorId::shard_missing, path(first).parent_path() / (first.whole.stem().string() + ".r*.ponder"),
            "all " + std::to_string(first.place.world) + " shards of the run",
            "no shard of " + std::string(missing.size() == 1 ? "rank " : "ranks ") + listed(missing),
            "record the missing ranks with --resume, or name their shards too");
    }
    std::vector<FoundShard> ordered;
    ordered.reserve(by_rank.size());
    for (const FoundShard* shard : by_rank) {
        ordered.push_back(*shard);
    }
    return ordered;
}

} // namespace

TraceReader::TraceReader(std::unique_ptr<const FileTrace> file)
    : name_(file->path()), notices_(file->notices()) {
    files_.push_back(std::move(file));
}

TraceReader::TraceReader(std::vector<std::unique_ptr<const FileTrace>> shards, std::filesystem::path name)
    : name_(std::move(name)), files_(std::move(shards)) {
    std::map<std::filesystem::path, std::vector<FoundShard>> by_name;
    for (std::size_t i = 0; i < files_.size(); ++i) {
        FoundShard found = look_at(*files_[i], i);
        const Notices& notices = files_[i]->notices();
        notices_.insert(notices_.end(), notices.begin(), notices.end());
        by_name[found.whole].push_back(std::move(found));
    }
    std::set<std::string> names;
    for (const auto& [whole, found] : by_name) {
        auto run = std::make_unique<JoinedRun>();
        for (const FoundShard& shard : in_order(found, files_)) {
            run->parts.push_back({shard.file, shard.what.run.id});
            if (run->parts.size() == 1) {
                run->info = shard.what.run;
                run->batch = shard.place.batch;
            }
        }
        run->info.id = static_cast<std::int64_t>(joined_.size()) + 1;
        const std::string wanted = run->info.name;
        for (int i = 2; !names.insert(run->info.name).second; ++i) {
            run->info.name = wanted + " (" + std::to_string(i) + ")";
        }
        joined_.push_back(std::move(run));
    }
}

TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;

TraceReader TraceReader::open(const std::filesystem::path& path) {
    if (const std::vector<std::filesystem::path> shards = find_shards(path); !shards.empty()) {
        return open_shards(shards, path);
    }
    return TraceReader(FileTrace::open(path));
}

TraceReader TraceReader::open_shards(const std::vector<std::filesystem::path>& files,
                                     const std::filesystem::path& name) {
    std::vector<std::unique_ptr<const FileTrace>> shards;
    for (const std::filesystem::path& file : files) {
        std::unique_ptr<FileTrace> trace = FileTrace::open(file);
        // The page caches of all shards together are about as large as that of a single file.
        const std::size_t kilobytes = std::max<std::size_t>(512, 16384 / files.size());
        trace->database().execute("PRAGMA cache_size=-" + std::to_string(kilobytes));
        shards.push_back(std::move(trace));
    }
    return {std::move(shards), name};
}

TraceReader TraceReader::another() const {
    return joined_.empty() ? open(path()) : open_shards(files(), path());
}

std::vector<std::filesystem::path> TraceReader::files() const {
    std::vector<std::filesystem::path> paths;
    for (const auto& file : files_) {
        paths.push_back(file->path());
    }
    return paths;
}

std::shared_ptr<const void> TraceReader::pin_snapshot() const {
    auto all = std::make_shared<std::vector<std::shared_ptr<const void>>>();
    for (const auto& file : files_) {
        all->push_back(file->pin_snapshot());
    }
    return all;
}

const TraceReader::JoinedRun& TraceReader::joined(std::int64_t run) const {
    if (run < 1 || run > static_cast<std::int64_t>(joined_.size())) {
        throw InputError(ErrorId::trace_run, name_, "run " + std::to_string(run), "no such run",
                         "choose a run that ponderscope inspect lists");
    }
    return *joined_[static_cast<std::size_t>(run - 1)];
}

std::vector<TraceReader::Part> TraceReader::parts_of(std::int64_t run) const {
    return joined_.empty() ? std::vector<Part>{{0, run}} : joined(run).parts;
}

std::vector<RunInfo> TraceReader::runs() const {
    if (joined_.empty()) {
        return files_.front()->runs();
    }
    std::vector<RunInfo> runs;
    for (const std::unique_ptr<JoinedRun>& run : joined_) {
        RunInfo all = run->info;
        all.complete = true;
        all.seconds = 0;
        for (const Part& part : run->parts) {
            const RunInfo shard = files_[part.file]->runs().front();
            all.complete = all.complete && shard.complete;
            all.seconds = std::max(all.seconds, shard.seconds); // shards are recorded in parallel
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

const TraceReader::JoinedRun& TraceReader::index_of(const JoinedRun& run) const {
    if (!run.indexed) {
        make_index(run);
    }
    return run;
}

void TraceReader::make_index(const JoinedRun& run) const {
    run.indexed = true;
    run.places.clear();
    run.sequences.clear();
    std::vector<std::pair<SequenceInfo, Place>> found;
    for (const Part& part : run.parts) {
        for (SequenceInfo& info : files_[part.file]->sequences(part.run)) {
            const Place place{part, info.number};
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
                ErrorId::trace_damaged, files_[place.part.file]->path(), "sequences that no other shard has",
                info.joined_number < 0 ? "a sequence without a number in the run"
                                       : "sequence " + std::to_string(info.joined_number) + " a second time",
                "take the shards from their source again");
        }
        if (info.joined_number > number) {
            break; // the sequences before it are missing
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

std::optional<ShardInfo> TraceReader::shard(std::int64_t run) const {
    return joined_.empty() ? files_.front()->shard(run) : ShardInfo{0, 1, joined(run).batch};
}

std::vector<SequenceInfo> TraceReader::sequences(std::int64_t run) const {
    if (joined_.empty()) {
        return files_.front()->sequences(run);
    }
    make_index(joined(run));
    return joined(run).sequences;
}

std::vector<SignalInfo> TraceReader::signal_infos(std::int64_t run) const {
    const Part part = parts_of(run).front();
    return files_[part.file]->signal_infos(part.run);
}

std::vector<TrainingInfo> TraceReader::trainings() const {
    return joined_.empty() ? files_.front()->trainings() : std::vector<TrainingInfo>();
}

std::vector<TrainingQuantity> TraceReader::training_quantities(std::int64_t training) const {
    return joined_.empty() ? files_.front()->training_quantities(training) : std::vector<TrainingQuantity>();
}

std::vector<TrainingCurve> TraceReader::training_curves(std::int64_t training) const {
    return joined_.empty() ? files_.front()->training_curves(training) : std::vector<TrainingCurve>();
}

TraceReader::Place TraceReader::place_of(std::int64_t run, std::int64_t sequence) const {
    if (joined_.empty()) {
        return {{0, run}, sequence};
    }
    const std::vector<Place>& places = index_of(joined(run)).places;
    if (sequence < 0 || sequence >= static_cast<std::int64_t>(places.size())) {
        throw InputError(ErrorId::trace_signal, name_,
                         "sequence " + std::to_string(sequence) + " of run " + std::to_string(run), "none",
                         "choose a sequence that ponderscope inspect lists");
    }
    return places[static_cast<std::size_t>(sequence)];
}

std::vector<std::pair<std::int64_t, TextLabel>> TraceReader::labels(std::int64_t run) const {
    if (joined_.empty()) {
        return files_.front()->labels(run);
    }
    const JoinedRun& of = index_of(joined(run));
    std::map<std::pair<std::size_t, std::int64_t>, std::vector<TextLabel>> in_shard;
    for (const Part& part : of.parts) {
        for (auto& [number, label] : files_[part.file]->labels(part.run)) {
            in_shard[{part.file, number}].push_back(std::move(label));
        }
    }
    std::vector<std::pair<std::int64_t, TextLabel>> labels;
    for (std::size_t sequence = 0; sequence < of.places.size(); ++sequence) {
        const Place& place = of.places[sequence];
        for (TextLabel& label : in_shard[{place.part.file, place.number}]) {
            labels.emplace_back(static_cast<std::int64_t>(sequence), std::move(label));
        }
    }
    return labels;
}

TokenColumns TraceReader::tokens(std::int64_t run, std::int64_t sequence, std::int64_t begin,
                                 std::int64_t end) const {
    const auto [part, number] = place_of(run, sequence);
    return files_[part.file]->tokens(part.run, number, begin, end);
}

std::optional<SignalChunk> TraceReader::signal(std::int64_t run, std::int64_t sequence,
                                               const std::string& name, std::int64_t begin,
                                               std::int64_t end) const {
    const auto [part, number] = place_of(run, sequence);
    return files_[part.file]->signal(part.run, number, name, begin, end);
}

std::string TraceReader::text(std::int64_t run, std::int64_t sequence) const {
    const auto [part, number] = place_of(run, sequence);
    return files_[part.file]->text(part.run, number);
}

std::string TraceReader::token_bytes(std::int64_t run, std::int32_t id) const {
    for (const Part& part : parts_of(run)) {
        if (std::string bytes = files_[part.file]->token_bytes(part.run, id); !bytes.empty()) {
            return bytes;
        }
    }
    return {};
}

std::vector<std::pair<std::int32_t, std::string>> TraceReader::vocabulary(std::int64_t run) const {
    if (joined_.empty()) {
        return files_.front()->vocabulary(run);
    }
    std::map<std::int32_t, std::string> words;
    for (const Part& part : joined(run).parts) {
        for (auto& [token, bytes] : files_[part.file]->vocabulary(part.run)) {
            words.emplace(token, std::move(bytes));
        }
    }
    return {words.begin(), words.end()};
}

std::vector<FaultInfo> TraceReader::faults(std::int64_t run) const {
    if (joined_.empty()) {
        return files_.front()->faults(run);
    }
    const JoinedRun& of = index_of(joined(run));
    std::vector<FaultInfo> faults;
    for (std::size_t rank = 0; rank < of.parts.size(); ++rank) {
        const Part& part = of.parts[rank];
        for (FaultInfo& fault : files_[part.file]->faults(part.run)) {
            const auto place = std::find_if(of.places.begin(), of.places.end(), [&](const Place& one) {
                return one.part.file == part.file && one.number == fault.sequence;
            });
            const bool found = fault.sequence >= 0 && place != of.places.end();
            faults.push_back({run, found ? place - of.places.begin() : -1, fault.time,
                              "rank " + std::to_string(rank) + ": " + fault.message});
        }
    }
    return faults;
}

RunReference parse_run_reference(const std::string& text) {
    // Names of files and runs may contain '#'. The first '#' after an existing file separates them. For files
    // on another machine and missing files, only the text itself can decide.
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
        // A folder is a folder of shards unless the text continues with a path inside the folder.
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

/// Whether \p run is a rerun of \p source: `policy --rerun` names reruns "SOURCE POLICY".
bool is_named_rerun_of(const RunInfo& run, const RunInfo& source) {
    return run.id != source.id && !run.policy.empty() && run.text_digest == source.text_digest &&
           run.checkpoint_digest == source.checkpoint_digest &&
           run.name.starts_with(source.name + " " + run.policy);
}

} // namespace

RunInfo run_by_id(const TraceReader& reader, std::int64_t id) {
    for (RunInfo& run : reader.runs()) {
        if (run.id == id) {
            return std::move(run);
        }
    }
    throw InputError(ErrorId::trace_run, reader.path(), "run " + std::to_string(id), "no such run",
                     "choose a run that ponderscope inspect lists");
}

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
        throw InputError(ErrorId::trace_run, reader.path(), "a run", "a trace without runs",
                         "record a run into it");
    }
    throw InputError(ErrorId::trace_run, reader.path(),
                     name.empty() ? "the name of a run" : "a run named " + name,
                     "the runs " + joined(runs, &RunInfo::name, 20),
                     "write one of them after #, as in " + reader.short_name_of(runs.front()));
}

} // namespace ponderscope
