// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/shard_set.h"

#include "core/base/error.h"
#include "core/trace/recording.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ponderscope {

/// Consecutive tokens of a sequence, in one of the shards.
struct ShardSet::Piece {
    std::size_t shard = 0;
    std::int64_t number = 0; ///< of the sequence within that shard
    PieceInfo place;
    std::int64_t tokens = 0;
    bool complete = false;
    [[nodiscard]] std::int64_t end() const { return place.first + tokens; }
};

struct ShardSet::Run {
    RunInfo info; ///< of rank 0, with the totals of all
    std::int64_t batch = 0;
    std::vector<std::pair<std::size_t, std::int64_t>> shards; ///< by rank: reader, run in it
    // What lies where; made when it is first asked for, and again with sequences().
    mutable std::vector<Piece> pieces;            ///< in the order of the whole
    mutable std::vector<std::size_t> first_piece; ///< of each sequence, and one behind the last
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
    std::string text;
    constexpr std::size_t most = 10;
    for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    }
    return ranks.size() > most ? text + " and " + std::to_string(ranks.size() - most) + " more" : text;
}

FoundShard look_at(const TraceReader& reader, std::size_t index) {
    const std::vector<RunInfo> runs = reader.runs();
    const std::optional<ShardInfo> place = runs.size() == 1 ? reader.shard(runs.front().id) : std::nullopt;
    if (!place || place->world < 2) {
        throw InputError(reader.path(), "a shard of a run that several processes recorded",
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
            throw InputError(path(shard), "a shard of the same run as " + path(first).filename().string(),
                             "one of another (" + difference + ")", "name the shards of one run");
        }
        const FoundShard*& here = by_rank[static_cast<std::size_t>(shard.place.rank)];
        if (here != nullptr) {
            throw InputError(path(shard), "each shard once",
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
        throw InputError(path(first).parent_path() / (first.whole.stem().string() + ".r*.ponder"),
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

std::shared_ptr<const void> ShardSet::hold() const {
    auto all = std::make_shared<std::vector<std::shared_ptr<const void>>>();
    for (const TraceReader& reader : readers_) {
        all->push_back(reader.hold());
    }
    return all;
}

const ShardSet::Run& ShardSet::run(std::int64_t id) const {
    if (id < 1 || id > static_cast<std::int64_t>(runs_.size())) {
        throw InputError(name_, "run " + std::to_string(id), "none",
                         "choose one of those that ponderscope inspect lists");
    }
    return *runs_[static_cast<std::size_t>(id - 1)];
}

namespace {

/// What some shards recorded ahead of what others miss cannot be read yet, and is not counted. Bytes and
/// FLOPs are known by shard only: in proportion.
void count_readable(RunInfo& all, const std::vector<SequenceInfo>& sequences) {
    const auto tokens = static_cast<double>(std::max<std::int64_t>(all.tokens, 1));
    const auto scored = static_cast<double>(std::max<std::int64_t>(all.scored_tokens, 1));
    all.tokens = all.scored_tokens = 0;
    all.nll_sum = all.steps_sum = 0;
    for (const SequenceInfo& sequence : sequences) {
        all.tokens += sequence.tokens;
        all.scored_tokens += sequence.scored_tokens;
        all.nll_sum += sequence.nll_sum;
        all.steps_sum += sequence.steps_sum;
    }
    all.flops_sum *= static_cast<double>(all.tokens) / tokens;
    all.text_bytes =
        std::llround(static_cast<double>(all.text_bytes) * (static_cast<double>(all.scored_tokens) / scored));
}

} // namespace

std::vector<RunInfo> ShardSet::runs() const {
    std::vector<RunInfo> runs;
    for (const std::unique_ptr<Run>& run : runs_) {
        RunInfo all = run->info;
        all.complete = true;
        all.sequences = all.tokens = all.scored_tokens = all.text_bytes = 0;
        all.nll_sum = all.steps_sum = all.flops_sum = all.seconds = 0;
        for (const auto& [reader, id] : run->shards) {
            const RunInfo shard = readers_[reader].runs().front();
            all.complete = all.complete && shard.complete;
            all.tokens += shard.tokens;
            all.scored_tokens += shard.scored_tokens;
            all.text_bytes += shard.text_bytes;
            all.nll_sum += shard.nll_sum;
            all.steps_sum += shard.steps_sum;
            all.flops_sum += shard.flops_sum;
            all.seconds = std::max(all.seconds, shard.seconds); // they ran side by side
            all.started = std::min(all.started, shard.started);
        }
        if (!all.complete) { // it may have grown
            make_index(*run);
            count_readable(all, run->sequences);
        }
        all.sequences = static_cast<std::int64_t>(index_of(*run).sequences.size());
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
    run.pieces.clear();
    run.first_piece.clear();
    run.sequences.clear();
    struct Found {
        Piece piece;
        SequenceInfo info;
    };
    std::vector<Found> found;
    for (const auto& [reader, id] : run.shards) {
        const std::vector<PieceInfo> places = readers_[reader].pieces(id);
        std::vector<SequenceInfo> infos = readers_[reader].sequences(id);
        if (places.size() > infos.size()) {
            infos.clear(); // it grew between the two looks; the next look sees more
        }
        for (std::size_t i = 0; i < std::min(places.size(), infos.size()); ++i) {
            const Piece piece{reader, infos[i].index, places[i], infos[i].tokens, infos[i].complete};
            found.push_back({piece, std::move(infos[i])});
        }
    }
    std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
        return std::pair(a.piece.place.sequence, a.piece.place.first) <
               std::pair(b.piece.place.sequence, b.piece.place.first);
    });
    for (std::size_t at = 0; at < found.size();) {
        const auto number = static_cast<std::int64_t>(run.sequences.size());
        const Piece& first = found[at].piece;
        if (first.place.sequence != number || first.place.first != 0) {
            break; // recorded ahead of what is missing
        }
        SequenceInfo whole = found[at].info;
        whole.run = run.info.id;
        whole.index = number;
        whole.tokens = whole.scored_tokens = 0;
        whole.nll_sum = whole.steps_sum = 0;
        run.first_piece.push_back(run.pieces.size());
        bool gap = false;
        for (; at < found.size() && found[at].piece.place.sequence == number; ++at) {
            const auto& [piece, info] = found[at];
            if (piece.place.first < whole.tokens || piece.place.tokens != first.place.tokens) {
                throw InputError(readers_[piece.shard].path(), "tokens that no other shard has",
                                 "token " + std::to_string(piece.place.first) + " of sequence " +
                                     std::to_string(number) + " a second time",
                                 "take the shards from their source again");
            }
            gap = gap || piece.place.first > whole.tokens;
            if (gap || piece.tokens == 0) {
                continue;
            }
            run.pieces.push_back(piece);
            whole.tokens += info.tokens;
            whole.scored_tokens += info.scored_tokens;
            whole.nll_sum += info.nll_sum;
            whole.steps_sum += info.steps_sum;
            gap = !piece.complete;
        }
        whole.complete = !gap && whole.tokens == first.place.tokens;
        const bool ended = whole.complete;
        run.sequences.push_back(std::move(whole));
        if (!ended) {
            break;
        }
    }
    run.first_piece.push_back(run.pieces.size());
}

ShardInfo ShardSet::whole(std::int64_t id) const {
    return {0, 1, run(id).batch};
}

std::vector<SequenceInfo> ShardSet::sequences(std::int64_t id) const {
    const Run& of = run(id);
    make_index(of);
    return of.sequences;
}

std::vector<SignalInfo> ShardSet::signals(std::int64_t id) const {
    const auto& [reader, there] = run(id).shards.front();
    return readers_[reader].signal_infos(there);
}

std::span<const ShardSet::Piece> ShardSet::pieces_of(std::int64_t id, std::int64_t sequence) const {
    const Run& of = index_of(run(id));
    if (sequence < 0 || sequence >= static_cast<std::int64_t>(of.sequences.size())) {
        throw InputError(name_, "sequence " + std::to_string(sequence) + " of run " + std::to_string(id),
                         "none", "choose one of those that ponderscope inspect lists");
    }
    const auto at = static_cast<std::size_t>(sequence);
    return std::span(of.pieces).subspan(of.first_piece[at], of.first_piece[at + 1] - of.first_piece[at]);
}

std::int64_t ShardSet::run_in(std::int64_t id, const Piece& piece) const {
    for (const auto& [reader, there] : run(id).shards) {
        if (reader == piece.shard) {
            return there;
        }
    }
    throw Error("a piece of no shard");
}

std::vector<std::pair<std::int64_t, TextLabel>> ShardSet::labels(std::int64_t id) const {
    const Run& of = index_of(run(id));
    std::map<std::size_t, std::map<std::int64_t, std::vector<TextLabel>>> in_shard;
    for (const auto& [reader, there] : of.shards) {
        for (auto& [number, label] : readers_[reader].labels(there)) {
            in_shard[reader][number].push_back(std::move(label));
        }
    }
    std::vector<std::pair<std::int64_t, TextLabel>> labels;
    for (const Piece& piece : of.pieces) {
        bool rest = piece.place.label_goes_on;
        for (TextLabel& label : in_shard[piece.shard][piece.number]) {
            label.begin += static_cast<std::uint64_t>(piece.place.text_begin);
            label.end += static_cast<std::uint64_t>(piece.place.text_begin);
            if (rest && !labels.empty() && labels.back().first == piece.place.sequence) {
                labels.back().second.end = label.end;
            } else {
                labels.emplace_back(piece.place.sequence, std::move(label));
            }
            rest = false;
        }
    }
    return labels;
}

namespace {

template <class Value>
void move_behind(std::vector<Value>& all, std::vector<Value>&& more) {
    all.insert(all.end(), more.begin(), more.end());
}

} // namespace

TokenColumns ShardSet::tokens(std::int64_t id, std::int64_t sequence, std::int64_t begin,
                              std::int64_t end) const {
    const std::span<const Piece> pieces = pieces_of(id, sequence);
    const std::int64_t all = pieces.empty() ? 0 : pieces.back().end();
    begin = std::clamp<std::int64_t>(begin, 0, all);
    end = end < 0 ? all : std::clamp(end, begin, all);
    TokenColumns columns;
    columns.first = begin;
    for (const Piece& piece : pieces) {
        const std::int64_t from = std::max(begin, piece.place.first);
        const std::int64_t to = std::min(end, piece.end());
        if (from >= to) {
            continue;
        }
        TokenColumns part = readers_[piece.shard].tokens(run_in(id, piece), piece.number,
                                                         from - piece.place.first, to - piece.place.first);
        const auto offset = static_cast<std::uint64_t>(piece.place.text_begin);
        for (std::size_t i = 0; i < part.size(); ++i) {
            part.begin[i] += offset;
            part.end[i] += offset;
        }
        move_behind(columns.id, std::move(part.id));
        move_behind(columns.begin, std::move(part.begin));
        move_behind(columns.end, std::move(part.end));
        move_behind(columns.nll, std::move(part.nll));
        move_behind(columns.entropy, std::move(part.entropy));
        move_behind(columns.max_probability, std::move(part.max_probability));
        move_behind(columns.rank, std::move(part.rank));
        move_behind(columns.steps, std::move(part.steps));
        move_behind(columns.flops, std::move(part.flops));
    }
    return columns;
}

std::optional<SignalChunk> ShardSet::signal(std::int64_t id, std::int64_t sequence, const std::string& name,
                                            std::int64_t begin, std::int64_t end) const {
    const std::span<const Piece> pieces = pieces_of(id, sequence);
    const std::int64_t all = pieces.empty() ? 0 : pieces.back().end();
    begin = std::clamp<std::int64_t>(begin, 0, all);
    end = end < 0 ? all : std::clamp(end, begin, all);
    std::vector<SignalChunk> parts;
    for (const Piece& piece : pieces) {
        const std::int64_t from = std::max(begin, piece.place.first);
        const std::int64_t to = std::min(end, piece.end());
        // An empty range still asks for one chunk, for the type and the shape.
        if (from < to || (begin == end && piece.place.first <= begin && begin <= piece.end())) {
            auto part =
                readers_[piece.shard].signal(run_in(id, piece), piece.number, name, from - piece.place.first,
                                             std::max(from, to) - piece.place.first);
            if (!part) {
                return std::nullopt;
            }
            parts.push_back(std::move(*part));
        }
        if (begin == end && !parts.empty()) {
            break;
        }
    }
    if (parts.empty()) {
        return std::nullopt;
    }
    SignalChunk result{begin, parts.front().dtype, parts.front().shape, {}};
    for (const SignalChunk& part : parts) {
        const bool alike = part.dtype == result.dtype && part.shape.size() == result.shape.size() &&
                           (part.shape.size() < 2 || std::equal(part.shape.begin() + 1, part.shape.end() - 1,
                                                                result.shape.begin() + 1));
        if (!alike) {
            throw InputError(name_, "values of one type and shape of signal " + name, "others in two shards",
                             "take the shards from their source again");
        }
        if (part.shape.size() > 1) { // what ends in zeros is as long as its own values reach
            result.shape.back() = std::max(result.shape.back(), part.shape.back());
        }
    }
    result.shape.front() = end - begin;
    const std::size_t item = size_of(result.dtype);
    for (SignalChunk& part : parts) {
        if (part.shape.size() < 2 || part.shape.back() == result.shape.back()) {
            move_behind(result.data, std::move(part.data));
            continue;
        }
        const std::size_t from = static_cast<std::size_t>(part.shape.back()) * item;
        const std::size_t to = static_cast<std::size_t>(result.shape.back()) * item;
        for (std::size_t at = 0; at < part.data.size(); at += from) {
            const auto row = part.data.begin() + static_cast<std::ptrdiff_t>(at);
            result.data.insert(result.data.end(), row, row + static_cast<std::ptrdiff_t>(from));
            result.data.resize(result.data.size() + (to - from));
        }
    }
    return result;
}

std::string ShardSet::text(std::int64_t id, std::int64_t sequence) const {
    std::string text;
    for (const Piece& piece : pieces_of(id, sequence)) {
        // Tokens and labels are placed by it.
        if (piece.place.text_begin != static_cast<std::int64_t>(text.size())) {
            throw InputError(readers_[piece.shard].path(),
                             "a piece of text that begins at byte " + std::to_string(text.size()) +
                                 " of sequence " + std::to_string(sequence),
                             "one from byte " + std::to_string(piece.place.text_begin),
                             "take the shards from their source again");
        }
        text += readers_[piece.shard].text(run_in(id, piece), piece.number);
    }
    return text;
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
            const auto piece =
                std::find_if(of.pieces.begin(), of.pieces.end(), [&, shard = reader](const Piece& one) {
                    return one.shard == shard && one.number == fault.sequence;
                });
            faults.push_back({id,
                              fault.sequence >= 0 && piece != of.pieces.end() ? piece->place.sequence : -1,
                              fault.time, "rank " + std::to_string(rank) + ": " + fault.message});
        }
    }
    return faults;
}

std::string ShardSet::check() const {
    for (const TraceReader& reader : readers_) {
        if (std::string fault = reader.check(); !fault.empty()) {
            return fault;
        }
    }
    return {};
}

} // namespace ponderscope
