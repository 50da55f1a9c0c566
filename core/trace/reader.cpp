// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/reader.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/trace/packed_values.h"
#include "core/trace/reader_impl.h"
#include "core/trace/schema.h"
#include "core/trace/shard_set.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

/// The largest BLOB that a connection hands out (database.cpp sets the limit); fits SQLite's int offsets.
constexpr std::int64_t max_blob_bytes = 512 << 20;

/// Values of a hostile row, brought into the range of what they stand for.
template <class Integer>
bool fits(std::int64_t value) {
    return value >= std::numeric_limits<Integer>::min() && value <= std::numeric_limits<Integer>::max();
}

} // namespace

void TraceReader::Impl::open_statements() {
    tokens_statement = database.prepare(
        "SELECT row, id, text_begin, text_end, nll, entropy, max_probability, rank, steps, flops "
        "FROM token_row WHERE row >= ? AND row < ? ORDER BY row");
    sequence_statement =
        database.prepare("SELECT id, tokens, text_bytes FROM sequence WHERE run = ? AND number = ?");
    // From the chunk that holds the first token wanted to the one that holds the last.
    chunks_statement = database.prepare("SELECT id, first_token, tokens, dtype, shape, length(data), "
                                        "typeof(data) FROM chunk WHERE sequence = ?1 AND signal = ?2 "
                                        "AND first_token < ?4 AND first_token >= coalesce((SELECT "
                                        "max(first_token) FROM chunk WHERE sequence = ?1 AND "
                                        "signal = ?2 AND first_token <= ?3), 0) ORDER BY first_token");
    signal_statement = database.prepare("SELECT id, axes FROM signal WHERE run = ? AND name = ?");
    data_statement = database.prepare("SELECT data FROM chunk WHERE id = ?");
    vocabulary_statement = database.prepare("SELECT v.bytes FROM run r JOIN vocabulary v ON v.tokenizer = "
                                            "r.tokenizer WHERE r.id = ? AND v.id = ?");
}

TraceReader::Impl::SequenceRow TraceReader::Impl::find_sequence(std::int64_t run, std::int64_t number) const {
    sequence_statement.bind(1, run).bind(2, number);
    const bool found = sequence_statement.step();
    SequenceRow row{};
    if (found) {
        row = {sequence_statement.integer(0), sequence_statement.integer(1), sequence_statement.integer(2)};
    }
    sequence_statement.reset();
    if (!found) {
        throw InputError(path, "sequence " + std::to_string(number) + " of run " + std::to_string(run),
                         "none", "choose one of those that ponderscope inspect lists");
    }
    if (row.id < 1 || row.id > schema::max_sequence_id) {
        damaged("a sequence number below 2^31", std::to_string(row.id));
    }
    plausible_tokens(row.tokens, is_packed(run));
    plausible(row.text_bytes, 1, "bytes of text");
    return row;
}

std::vector<ChunkRow> TraceReader::Impl::find_chunks(const SequenceRow& place, std::int64_t signal,
                                                     const nlohmann::json& axes, std::int64_t begin,
                                                     std::int64_t until, const std::string& what) const {
    // Only the last axis may differ, and only where what is missing is zeros.
    const bool trimmed = axes.is_array() && axes.size() > 1 && axes.back() == back_axis;
    std::vector<ChunkRow> chunks;
    Statement& rows = chunks_statement;
    const StatementReset reset{rows};
    rows.bind(1, place.id).bind(2, signal).bind(3, begin).bind(4, until);
    while (rows.step()) {
        ChunkRow chunk;
        chunk.id = rows.integer(0);
        chunk.first = rows.integer(1);
        chunk.tokens = rows.integer(2);
        const std::string shape_text = rows.text(4);
        const std::int64_t bytes = rows.integer(5);
        const std::optional<StoredType> type = stored_type_from_name(rows.text(3));
        if (!type || rows.text(6) != "blob") {
            damaged("a packed array in " + what, rows.text(6) + " of type " + rows.text(3));
        }
        chunk.dtype = type->dtype;
        chunk.compressed_bytes = type->compressed ? bytes : 0;
        // What is compressed may stand for more than the file has, but not for more than a BLOB can hold.
        const std::int64_t most = type->compressed ? max_blob_bytes : bytes;
        const nlohmann::json shape = parse_json(shape_text, path, {.max_bytes = 10'000, .max_depth = 2});
        bool agrees = shape.is_array() && shape.size() == axes.size() && chunk.tokens > 0 &&
                      chunk.first >= 0 && chunk.first <= place.tokens &&
                      chunk.tokens <= place.tokens - chunk.first && bytes <= max_blob_bytes &&
                      bytes <= file_bytes();
        auto product = static_cast<std::int64_t>(size_of(chunk.dtype));
        for (std::size_t axis = 0; agrees && axis < shape.size(); ++axis) {
            agrees = shape[axis].is_number_unsigned() && shape[axis] >= 1 && shape[axis] <= most / product;
            if (agrees) {
                chunk.shape.push_back(shape[axis].get<std::int64_t>());
                product *= chunk.shape.back();
            }
        }
        agrees = agrees && chunk.shape.front() == chunk.tokens && (type->compressed || product == bytes);
        if (!agrees) {
            damaged("a chunk of " + what + " whose size agrees with its shape",
                    shape_text.substr(0, 100) + " of " + rows.text(3) + " for " +
                        std::to_string(chunk.tokens) + " tokens in " + std::to_string(bytes) + " bytes");
        }
        if (!chunks.empty()) {
            const ChunkRow& known = chunks.front();
            const std::ptrdiff_t last = trimmed ? 1 : 0;
            if (chunk.dtype != known.dtype ||
                !std::equal(chunk.shape.begin() + 1, chunk.shape.end() - last, known.shape.begin() + 1,
                            known.shape.end() - last)) {
                damaged("chunks of one type and shape in " + what,
                        "another from token " + std::to_string(chunk.first));
            }
        }
        chunks.push_back(std::move(chunk));
    }
    return chunks;
}

TraceReader TraceReader::open(const std::filesystem::path& path) {
    if (const std::vector<std::filesystem::path> shards = find_shards(path); !shards.empty()) {
        return open_shards(shards, path);
    }
    check_trace_header(path);
    const auto attempt = [&](Database::Access access) {
        auto impl = std::make_unique<Impl>(path, Database(path, access));
        impl->database.execute(
            "PRAGMA query_only=ON; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-16384");
        // First touch of the file: locks, log and header.
        if (impl->database.integer("PRAGMA application_id") != schema::application_id ||
            impl->database.integer("PRAGMA user_version") != schema::version) {
            throw InputError(path, "a trace of version " + std::to_string(schema::version),
                             "another header in its log", take_again);
        }
        check_trace_tables(impl->database, path);
        impl->open_statements();
        return impl;
    };
    const auto sentence = [&](const SqliteFailure& failure) {
        if (failure.is_damage()) {
            throw InputError(path, "a sound trace", std::string("a damaged one (") + failure.what() + ")",
                             take_again);
        }
        throw EnvironmentError(path.string() + ": cannot be opened (" + failure.what() +
                               "); check the permissions of the file and of its folder.");
    };
    try {
        return TraceReader(attempt(Database::Access::read));
    } catch (const SqliteFailure& failure) {
        // A trace in WAL mode wants a helper file beside it. Where that cannot be made, nobody else writes
        // either.
        if (!failure.lacks_helper_files()) {
            sentence(failure);
        }
    }
    try {
        auto impl = attempt(Database::Access::read_immutable);
        std::error_code error;
        const std::filesystem::path log = path.string() + "-wal";
        if (std::filesystem::file_size(log, error) > 0 && !error) {
            impl->notices.push_back(
                log.string() + " cannot be used here; what it holds is missing. Copy the trace with all "
                               "files beside it to a folder that can be written, with room on its disk, to "
                               "see it.");
        }
        return TraceReader(std::move(impl));
    } catch (const SqliteFailure& failure) {
        sentence(failure);
        throw; // not reached: sentence() throws
    }
}

TraceReader::TraceReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceReader::TraceReader(std::unique_ptr<ShardSet> shards) : shards_(std::move(shards)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

const std::filesystem::path& TraceReader::path() const {
    return shards_ ? shards_->name() : impl_->path;
}

const std::vector<std::string>& TraceReader::notices() const {
    return shards_ ? shards_->notices() : impl_->notices;
}

std::vector<SequenceInfo> TraceReader::sequences(std::int64_t run) const {
    if (shards_) {
        return shards_->sequences(run);
    }
    return impl_->read([&] {
        std::vector<SequenceInfo> sequences;
        Statement rows = impl_->database.prepare(
            "SELECT number, title, tokens, scored_tokens, nll_sum, steps_sum, complete, "
            "coalesce(\"group\", ''), coalesce(joined_number, -1) FROM sequence WHERE run = ? ORDER BY "
            "number");
        const bool packed = impl_->is_packed(run);
        rows.bind(1, run);
        while (rows.step()) {
            SequenceInfo info;
            info.run = run;
            info.index = rows.integer(0);
            info.title = rows.text(1);
            info.tokens = impl_->plausible_tokens(rows.integer(2), packed);
            info.scored_tokens = rows.integer(3);
            info.nll_sum = rows.real(4);
            info.steps_sum = rows.real(5);
            info.complete = rows.integer(6) == 1;
            info.group = rows.text(7);
            info.joined = rows.integer(8);
            if (info.index != static_cast<std::int64_t>(sequences.size())) {
                impl_->damaged("sequence " + std::to_string(sequences.size()) + " of run " +
                                   std::to_string(run),
                               "number " + std::to_string(info.index));
            }
            sequences.push_back(std::move(info));
        }
        return sequences;
    });
}

std::vector<SignalInfo> TraceReader::signal_infos(std::int64_t run) const {
    if (shards_) {
        return shards_->signals(run);
    }
    return impl_->read([&] {
        std::vector<SignalInfo> signals;
        Statement rows = impl_->database.prepare(
            "SELECT name, axes, unit, title, description FROM signal WHERE run = ? ORDER BY id");
        rows.bind(1, run);
        while (rows.step()) {
            SignalInfo info;
            info.name = impl_->line(rows, 0, "names of signals");
            const nlohmann::json axes =
                parse_json(rows.text(1), impl_->path, {.max_bytes = 10'000, .max_depth = 2});
            const bool texts =
                axes.is_array() && !axes.empty() &&
                std::all_of(axes.begin(), axes.end(), [](const auto& axis) { return axis.is_string(); });
            if (!texts || axes.front() != "token") {
                impl_->damaged("axes of signal " + info.name + " that begin with token", rows.text(1));
            }
            info.axes = axes.get<std::vector<std::string>>();
            info.unit = impl_->line(rows, 2, "units of signals");
            info.title = impl_->line(rows, 3, "titles of signals");
            info.description = impl_->line(rows, 4, "descriptions of signals");
            if (info.name != packed_token_signal || info.axes != packed_token_info().axes) {
                signals.push_back(std::move(info));
            }
        }
        return signals;
    });
}

std::vector<std::pair<std::int64_t, TextLabel>> TraceReader::labels(std::int64_t run) const {
    if (shards_) {
        return shards_->labels(run);
    }
    return impl_->read([&] {
        std::vector<std::pair<std::int64_t, TextLabel>> labels;
        Statement rows = impl_->database.prepare(
            "SELECT s.number, s.text_bytes, l.text_begin, l.text_end, l.class FROM sequence s JOIN label l "
            "ON l.sequence = s.id WHERE s.run = ? ORDER BY s.number, l.text_begin");
        rows.bind(1, run);
        while (rows.step()) {
            const std::int64_t begin = rows.integer(2);
            const std::int64_t end = rows.integer(3);
            if (begin < 0 || end <= begin || end > rows.integer(1)) {
                impl_->damaged("labels within the text of sequence " + std::to_string(rows.integer(0)),
                               "one of bytes " + std::to_string(begin) + " to " + std::to_string(end));
            }
            labels.push_back(
                {rows.integer(0),
                 {static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end), rows.text(4)}});
        }
        return labels;
    });
}

TokenColumns TraceReader::tokens(std::int64_t run, std::int64_t sequence, std::int64_t begin,
                                 std::int64_t end) const {
    if (shards_) {
        return shards_->tokens(run, sequence, begin, end);
    }
    return impl_->read([&] {
        if (impl_->is_packed(run)) {
            return packed_tokens(run, sequence, begin, end);
        }
        const Impl::SequenceRow place = impl_->find_sequence(run, sequence);
        begin = std::clamp<std::int64_t>(begin, 0, place.tokens);
        end = end < 0 ? place.tokens : std::clamp(end, begin, place.tokens);
        const auto n = static_cast<std::size_t>(impl_->plausible(end - begin, 10, "tokens"));
        TokenColumns columns;
        columns.first = begin;
        columns.id.reserve(n);
        columns.begin.reserve(n);
        columns.end.reserve(n);
        columns.nll.reserve(n);
        columns.entropy.reserve(n);
        columns.max_probability.reserve(n);
        columns.rank.reserve(n);
        columns.steps.reserve(n);
        columns.flops.reserve(n);
        Statement& rows = impl_->tokens_statement;
        const std::int64_t first_row = place.id << schema::position_bits | begin;
        rows.bind(1, first_row).bind(2, first_row + static_cast<std::int64_t>(n));
        std::int64_t position = begin;
        try {
            for (; rows.step(); ++position) {
                const std::int64_t id = rows.integer(1);
                const std::int64_t from = rows.integer(2);
                const std::int64_t to = rows.integer(3);
                const std::int64_t rank = rows.integer(7);
                const std::int64_t steps = rows.integer(8);
                if (rows.integer(0) != first_row + (position - begin) || !fits<std::int32_t>(id) ||
                    from < 0 || to < from || to > place.text_bytes || rank < 0 || !fits<std::int32_t>(rank) ||
                    steps < 0 || !fits<std::int32_t>(steps)) {
                    impl_->damaged("token " + std::to_string(position) + " of sequence " +
                                       std::to_string(sequence),
                                   "a row with other values than a token can have");
                }
                columns.id.push_back(static_cast<std::int32_t>(id));
                columns.begin.push_back(static_cast<std::uint64_t>(from));
                columns.end.push_back(static_cast<std::uint64_t>(to));
                columns.nll.push_back(static_cast<float>(rows.real(4)));
                columns.entropy.push_back(static_cast<float>(rows.real(5)));
                columns.max_probability.push_back(static_cast<float>(rows.real(6)));
                columns.rank.push_back(static_cast<std::int32_t>(rank));
                columns.steps.push_back(static_cast<std::int32_t>(steps));
                columns.flops.push_back(rows.integer(9));
            }
        } catch (...) {
            rows.reset();
            throw;
        }
        rows.reset();
        if (position != end) {
            impl_->damaged(std::to_string(place.tokens) + " tokens in sequence " + std::to_string(sequence),
                           "rows that stop at " + std::to_string(position));
        }
        return columns;
    });
}

std::optional<SignalChunk> TraceReader::signal(std::int64_t run, std::int64_t sequence,
                                               const std::string& name, std::int64_t begin,
                                               std::int64_t end) const {
    if (shards_) {
        return shards_->signal(run, sequence, name, begin, end);
    }
    return impl_->read([&]() -> std::optional<SignalChunk> {
        const Impl::SequenceRow place = impl_->find_sequence(run, sequence);
        begin = std::clamp<std::int64_t>(begin, 0, place.tokens);
        end = end < 0 ? place.tokens : std::clamp(end, begin, place.tokens);
        Statement& find = impl_->signal_statement;
        const StatementReset reset{find};
        find.bind(1, run).bind(2, std::string_view(name));
        if (!find.step()) {
            return std::nullopt;
        }
        const std::int64_t signal = find.integer(0);
        const nlohmann::json axes =
            parse_json(find.text(1), impl_->path, {.max_bytes = 10'000, .max_depth = 2});
        const std::string what = "signal " + name + " of sequence " + std::to_string(sequence);
        // An empty range still asks for one chunk, for the type and the shape.
        const std::vector<ChunkRow> chunks =
            impl_->find_chunks(place, signal, axes, begin, std::max(end, begin + 1), what);
        if (chunks.empty()) {
            return std::nullopt;
        }
        SignalChunk result;
        result.first = begin;
        result.dtype = chunks.front().dtype;
        result.shape = chunks.front().shape;
        result.shape.front() = end - begin;
        for (std::size_t i = 1; axes.size() > 1 && i < chunks.size(); ++i) {
            result.shape.back() = std::max(result.shape.back(), chunks[i].shape.back());
        }
        const auto token_bytes = static_cast<std::size_t>(bytes_a_token(result.dtype, result.shape));
        if (chunks.front().compressed_bytes == 0) {
            impl_->plausible(end - begin, chunks.front().token_bytes(), ("tokens of " + what).c_str());
        }
        const std::size_t most =
            4 * std::max<std::size_t>(static_cast<std::size_t>(impl_->file_bytes()), std::size_t{64} << 20);
        if (token_bytes > most / std::max<std::size_t>(1, static_cast<std::size_t>(end - begin))) {
            impl_->damaged("values of " + what + " that fit into memory",
                           "one chunk as wide as a whole text");
        }
        result.data.resize(static_cast<std::size_t>(end - begin) * token_bytes);
        std::int64_t next = begin;
        std::vector<std::byte> narrow;
        for (const ChunkRow& chunk : chunks) {
            if (chunk.first > next || (chunk.first != next && next != begin)) {
                impl_->damaged("values of " + what + " from token " + std::to_string(next),
                               "a chunk from token " + std::to_string(chunk.first));
            }
            const std::int64_t stop = std::min(chunk.first + chunk.tokens, end);
            if (stop <= next) {
                continue;
            }
            const auto own_bytes = static_cast<std::size_t>(chunk.token_bytes());
            const std::size_t skip = static_cast<std::size_t>(next - chunk.first) * own_bytes;
            const std::size_t count = static_cast<std::size_t>(stop - next) * own_bytes;
            const std::span<std::byte> target =
                std::span(result.data)
                    .subspan(static_cast<std::size_t>(next - begin) * token_bytes,
                             static_cast<std::size_t>(stop - next) * token_bytes);
            if (own_bytes == token_bytes) {
                impl_->read_values(chunk, skip, target, what);
            } else { // stored without the zeros that it ends in
                narrow.resize(count);
                impl_->read_values(chunk, skip, narrow, what);
                const std::size_t from = static_cast<std::size_t>(chunk.shape.back()) * size_of(chunk.dtype);
                const std::size_t to = static_cast<std::size_t>(result.shape.back()) * size_of(chunk.dtype);
                for (std::size_t row = 0; row * from < count; ++row) {
                    std::copy_n(narrow.begin() + static_cast<std::ptrdiff_t>(row * from), from,
                                target.begin() + static_cast<std::ptrdiff_t>(row * to));
                }
            }
            next = stop;
        }
        if (next != end) {
            impl_->damaged("values of " + what + " up to token " + std::to_string(end),
                           "chunks that stop at " + std::to_string(next));
        }
        return result;
    });
}

std::string TraceReader::text(std::int64_t run, std::int64_t sequence) const {
    if (shards_) {
        return shards_->text(run, sequence);
    }
    return impl_->read([&] {
        const Impl::SequenceRow place = impl_->find_sequence(run, sequence);
        std::string text;
        text.reserve(static_cast<std::size_t>(place.text_bytes));
        Statement rows =
            impl_->database.prepare("SELECT bytes FROM text WHERE row >= ? AND row < ? ORDER BY row");
        rows.bind(1, place.id << schema::position_bits).bind(2, (place.id + 1) << schema::position_bits);
        while (rows.step()) {
            const std::span<const std::byte> piece = rows.blob(0);
            if (piece.size() > static_cast<std::size_t>(place.text_bytes) - text.size()) {
                impl_->damaged(std::to_string(place.text_bytes) + " bytes of text in sequence " +
                                   std::to_string(sequence),
                               "more");
            }
            text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        }
        if (text.size() != static_cast<std::size_t>(place.text_bytes)) {
            impl_->damaged(std::to_string(place.text_bytes) + " bytes of text in sequence " +
                               std::to_string(sequence),
                           std::to_string(text.size()));
        }
        return text;
    });
}

std::string TraceReader::token_bytes(std::int64_t run, std::int32_t id) const {
    if (shards_) {
        return shards_->token_bytes(run, id);
    }
    return impl_->read([&] {
        Statement& rows = impl_->vocabulary_statement;
        rows.bind(1, run).bind(2, std::int64_t{id});
        std::string bytes;
        if (rows.step()) {
            const std::span<const std::byte> blob = rows.blob(0);
            bytes.assign(reinterpret_cast<const char*>(blob.data()), blob.size());
        }
        rows.reset();
        return bytes;
    });
}

std::vector<std::pair<std::int32_t, std::string>> TraceReader::vocabulary(std::int64_t run) const {
    if (shards_) {
        return shards_->vocabulary(run);
    }
    return impl_->read([&] {
        std::vector<std::pair<std::int32_t, std::string>> words;
        Statement rows = impl_->database.prepare("SELECT v.id, v.bytes FROM run r JOIN vocabulary v ON "
                                                 "v.tokenizer = r.tokenizer WHERE r.id = ? ORDER BY v.id");
        rows.bind(1, run);
        while (rows.step()) {
            const std::int64_t id = rows.integer(0);
            if (!fits<std::int32_t>(id)) {
                impl_->damaged("token ids of 32 bits in the vocabulary", std::to_string(id));
            }
            const std::span<const std::byte> blob = rows.blob(1);
            words.emplace_back(static_cast<std::int32_t>(id),
                               std::string(reinterpret_cast<const char*>(blob.data()), blob.size()));
        }
        return words;
    });
}

std::vector<FaultInfo> TraceReader::faults(std::int64_t run) const {
    if (shards_) {
        return shards_->faults(run);
    }
    return impl_->read([&] {
        std::vector<FaultInfo> faults;
        Statement rows = impl_->database.prepare(
            "SELECT coalesce(sequence, -1), time, message FROM fault WHERE run = ? ORDER BY id");
        rows.bind(1, run);
        while (rows.step()) {
            faults.push_back({run, rows.integer(0), rows.text(1), rows.text(2)});
        }
        return faults;
    });
}

std::string TraceReader::check() const {
    if (shards_) {
        return shards_->check();
    }
    try {
        const ReadTransaction transaction(impl_->database);
        const std::string answer = impl_->database.text("PRAGMA quick_check(1)");
        return answer == "ok" ? std::string() : impl_->path.string() + ": is damaged (" + answer + ").";
    } catch (const SqliteFailure& failure) {
        return impl_->path.string() + ": is damaged (" + failure.what() + ").";
    }
}

} // namespace ponderscope
