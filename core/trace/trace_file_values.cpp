// SPDX-License-Identifier: GPL-3.0-or-later
// FileTrace: texts, tokens and values of signals.
#include "core/base/json.h"
#include "core/trace/packed_values.h"
#include "core/trace/rows.h"
#include "core/trace/trace_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace ponderscope {
namespace {

/// The largest BLOB that a connection returns (limit in database.cpp). Fits SQLite's int offsets.
constexpr std::int64_t max_blob_bytes = 512 << 20;

/// Bytes of one token's values in an array with this type and shape.
std::int64_t bytes_a_token(DType dtype, std::span<const std::int64_t> shape) {
    auto bytes = static_cast<std::int64_t>(size_of(dtype));
    for (const std::int64_t length : shape.subspan(1)) {
        bytes *= length;
    }
    return bytes;
}

/// A value of token_row in its type in TokenColumns. No value: it is out of the range of this type.
template <class Value>
std::optional<Value> token_value(const Statement& rows, int column) {
    if constexpr (std::is_floating_point_v<Value>) {
        return static_cast<Value>(rows.real(column));
    } else {
        const std::int64_t value = rows.integer(column);
        return std::in_range<Value>(value) ? std::optional(static_cast<Value>(value)) : std::nullopt;
    }
}

} // namespace

std::int64_t FileTrace::ChunkRow::token_bytes() const {
    return bytes_a_token(dtype, shape);
}

SequenceInfo FileTrace::find_sequence(std::int64_t run, std::int64_t number) const {
    static const std::string sql =
        "SELECT " + schema::columns_of("sequence") + " FROM sequence WHERE run = ? AND number = ?";
    Statement& rows = database_.prepared(sql);
    const StatementReset reset{rows};
    rows.bind_all(run, number);
    if (!rows.step()) {
        throw InputError(ErrorId::trace_signal, path_,
                         "sequence " + std::to_string(number) + " of run " + std::to_string(run), "none",
                         "choose a sequence that ponderscope inspect lists");
    }
    const auto row = schema::read_row<SequenceInfo>(
        rows, [&](const std::string& expected, const std::string& found) { damaged(expected, found); });
    if (row.id < 1 || row.id > schema::max_sequence_id) {
        damaged("a sequence number below 2^31", std::to_string(row.id));
    }
    plausible_tokens(row.tokens, is_packed(run));
    plausible(row.text_bytes, 1, "bytes of text");
    return row;
}

std::vector<FileTrace::ChunkRow> FileTrace::find_chunks(const SequenceInfo& place, std::int64_t id,
                                                        const SignalInfo& signal, std::int64_t begin,
                                                        std::int64_t until, const std::string& what) const {
    // Chunks of trimmed signals may differ in the length of the last axis; other axes must agree.
    const bool trimmed = signal.storage == SignalStorage::trimmed && signal.axes.size() > 1;
    std::vector<ChunkRow> chunks;
    // From the chunk that contains token `begin` to the chunk that contains token `until` - 1.
    Statement& rows = database_.prepared(
        "SELECT id, first_token, tokens, dtype, shape, length(data), typeof(data) FROM chunk WHERE "
        "sequence = ?1 AND signal = ?2 AND first_token < ?4 AND first_token >= coalesce((SELECT "
        "max(first_token) FROM chunk WHERE sequence = ?1 AND signal = ?2 AND first_token <= ?3), 0) "
        "ORDER BY first_token");
    const StatementReset reset{rows};
    rows.bind_all(place.id, id, begin, until);
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
        // Compressed values may be larger than the file, but not larger than the largest BLOB.
        const std::int64_t most = type->compressed ? max_blob_bytes : bytes;
        const nlohmann::json shape = parse_json(shape_text, path_, {.max_bytes = 10'000, .max_depth = 2});
        bool agrees = shape.is_array() && shape.size() == signal.axes.size() && chunk.tokens > 0 &&
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

TokenColumns FileTrace::tokens(std::int64_t run, std::int64_t sequence, std::int64_t begin,
                               std::int64_t end) const {
    return read([&] {
        if (is_packed(run)) {
            return packed_tokens(run, sequence, begin, end);
        }
        const SequenceInfo place = find_sequence(run, sequence);
        begin = std::clamp<std::int64_t>(begin, 0, place.tokens);
        end = end < 0 ? place.tokens : std::clamp(end, begin, place.tokens);
        const auto n = static_cast<std::size_t>(plausible(end - begin, 10, "tokens"));
        TokenColumns columns;
        columns.first = begin;
        schema::each_token_field([&](const auto& field) { (columns.*field.values).reserve(n); });
        static const std::string sql = "SELECT " + schema::columns_of("token_row") +
                                       " FROM token_row WHERE row >= ? AND row < ? ORDER BY row";
        Statement& rows = database_.prepared(sql);
        const StatementReset reset{rows};
        const std::int64_t first_row = place.id << schema::position_bits | begin;
        rows.bind_all(first_row, first_row + static_cast<std::int64_t>(n));
        std::int64_t position = begin;
        for (; rows.step(); ++position) {
            bool fits = rows.integer(0) == first_row + (position - begin);
            int column = 0;
            schema::each_token_field([&](const auto& field) {
                auto& values = columns.*field.values;
                using Value = typename std::decay_t<decltype(values)>::value_type;
                const std::optional<Value> value = token_value<Value>(rows, ++column);
                fits = fits && value.has_value();
                values.push_back(value.value_or(Value{}));
            });
            if (!fits || columns.end.back() < columns.begin.back() ||
                columns.end.back() > static_cast<std::uint64_t>(place.text_bytes) ||
                columns.rank.back() < 0 || columns.steps.back() < 0) {
                damaged("token " + std::to_string(position) + " of sequence " + std::to_string(sequence),
                        "a row with other values than a token can have");
            }
        }
        if (position != end) {
            damaged(std::to_string(place.tokens) + " tokens in sequence " + std::to_string(sequence),
                    "rows that stop at " + std::to_string(position));
        }
        return columns;
    });
}

std::optional<SignalChunk> FileTrace::signal(std::int64_t run, std::int64_t sequence, const std::string& name,
                                             std::int64_t begin, std::int64_t end) const {
    return read([&]() -> std::optional<SignalChunk> {
        const SequenceInfo place = find_sequence(run, sequence);
        begin = std::clamp<std::int64_t>(begin, 0, place.tokens);
        end = end < 0 ? place.tokens : std::clamp(end, begin, place.tokens);
        static const std::string sql =
            "SELECT " + schema::columns_of("signal") + " FROM signal WHERE run = ? AND name = ?";
        Statement& find = database_.prepared(sql);
        const StatementReset reset{find};
        find.bind_all(run, name);
        if (!find.step()) {
            return std::nullopt;
        }
        const std::int64_t id = find.integer(0);
        const auto info = schema::read_row<SignalInfo>(
            find, [&](const std::string& expected, const std::string& found) { damaged(expected, found); });
        const std::string what = "signal " + name + " of sequence " + std::to_string(sequence);
        // An empty range still needs one chunk, for its type and shape.
        const std::vector<ChunkRow> chunks =
            find_chunks(place, id, info, begin, std::max(end, begin + 1), what);
        if (chunks.empty()) {
            return std::nullopt;
        }
        SignalChunk result;
        result.first = begin;
        result.dtype = chunks.front().dtype;
        result.shape = chunks.front().shape;
        result.shape.front() = end - begin;
        for (std::size_t i = 1; info.axes.size() > 1 && i < chunks.size(); ++i) {
            result.shape.back() = std::max(result.shape.back(), chunks[i].shape.back());
        }
        const auto token_bytes = static_cast<std::size_t>(bytes_a_token(result.dtype, result.shape));
        if (chunks.front().compressed_bytes == 0) {
            plausible(end - begin, chunks.front().token_bytes(), ("tokens of " + what).c_str());
        }
        const std::size_t most =
            4 * std::max<std::size_t>(static_cast<std::size_t>(file_bytes()), std::size_t{64} << 20);
        if (token_bytes > most / std::max<std::size_t>(1, static_cast<std::size_t>(end - begin))) {
            damaged("values of " + what + " that fit into memory", "one chunk as wide as a whole text");
        }
        result.data.resize(static_cast<std::size_t>(end - begin) * token_bytes);
        std::int64_t next = begin;
        std::vector<std::byte> narrow;
        for (const ChunkRow& chunk : chunks) {
            if (chunk.first > next || (chunk.first != next && next != begin)) {
                damaged("values of " + what + " from token " + std::to_string(next),
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
                read_values(chunk, skip, target, what);
            } else { // trimmed: each row is padded with zeros
                narrow.resize(count);
                read_values(chunk, skip, narrow, what);
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
            damaged("values of " + what + " up to token " + std::to_string(end),
                    "chunks that stop at " + std::to_string(next));
        }
        return result;
    });
}

std::string FileTrace::text(std::int64_t run, std::int64_t sequence) const {
    return read([&] {
        const SequenceInfo place = find_sequence(run, sequence);
        std::string text;
        text.reserve(static_cast<std::size_t>(place.text_bytes));
        Statement rows = database_.prepare("SELECT bytes FROM text WHERE row >= ? AND row < ? ORDER BY row");
        rows.bind_all(place.id << schema::position_bits, (place.id + 1) << schema::position_bits);
        while (rows.step()) {
            const std::span<const std::byte> piece = rows.blob(0);
            if (piece.size() > static_cast<std::size_t>(place.text_bytes) - text.size()) {
                damaged(std::to_string(place.text_bytes) + " bytes of text in sequence " +
                            std::to_string(sequence),
                        "more");
            }
            text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        }
        if (text.size() != static_cast<std::size_t>(place.text_bytes)) {
            damaged(std::to_string(place.text_bytes) + " bytes of text in sequence " +
                        std::to_string(sequence),
                    std::to_string(text.size()));
        }
        return text;
    });
}

void FileTrace::read_values(const ChunkRow& chunk, std::size_t skip, std::span<std::byte> out,
                            const std::string& what) const {
    if (chunk.compressed_bytes == 0) {
        database_.read_blob("chunk", "data", chunk.id, skip, out);
        return;
    }
    const auto all = static_cast<std::size_t>(chunk.tokens * chunk.token_bytes());
    Statement& row = database_.prepared("SELECT data FROM chunk WHERE id = ?");
    const StatementReset reset{row};
    const std::span<const std::byte> stored =
        row.bind(1, chunk.id).step() ? row.blob(0) : std::span<const std::byte>();
    std::vector<std::byte> some;
    if (out.size() != all) {
        some.resize(all);
    }
    const std::span<std::byte> values = some.empty() ? out : std::span(some);
    if (!expand_values(stored, chunk.tokens, values)) {
        damaged("compressed values in " + what, "others from token " + std::to_string(chunk.first));
    }
    if (!some.empty()) {
        std::copy_n(some.begin() + static_cast<std::ptrdiff_t>(skip), out.size(), out.begin());
    }
}

TokenColumns FileTrace::packed_tokens(std::int64_t run, std::int64_t sequence, std::int64_t begin,
                                      std::int64_t end) const {
    const SequenceInfo place = read([&] { return find_sequence(run, sequence); });
    const std::string which = "sequence " + std::to_string(sequence);
    const auto chunk = signal(run, sequence, packed_token_signal, begin, end);
    std::optional<TokenColumns> tokens;
    if (chunk) {
        tokens = unpack_tokens(*chunk);
    } else if (place.tokens == 0) {
        tokens.emplace();
    }
    if (!tokens) {
        damaged("packed tokens in " + which, "none");
    }
    for (std::size_t i = 0; i < tokens->size(); ++i) {
        if (tokens->end[i] < tokens->begin[i] ||
            tokens->end[i] > static_cast<std::uint64_t>(place.text_bytes) || tokens->rank[i] < 0) {
            damaged("token " + std::to_string(tokens->first + static_cast<std::int64_t>(i)) + " of " + which,
                    "other values than a token can have");
        }
    }
    return std::move(*tokens);
}

} // namespace ponderscope
