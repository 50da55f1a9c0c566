// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/writing/store.h"

#include "core/base/error.h"
#include "core/trace/packed_values.h"
#include "core/trace/rows.h"
#include "core/trace/tools/run_edits.h"

#include <algorithm>
#include <ctime>
#include <span>

namespace ponderscope {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

bool is_file_with_content(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::exists(path, error) &&
           (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) > 0);
}

} // namespace

std::string utc_now() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    char text[32];
    const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text, size};
}

TraceStore::TraceStore(const std::filesystem::path& path, bool compress, bool temporary)
    : path_(path), temporary_(temporary), always_compress_(compress), database_([&] {
          const bool exists = is_file_with_content(path);
          if (exists) {
              check_trace_header(path);
          }
          return Database(path, exists ? Database::Access::write : Database::Access::create);
      }()) {
    if (database_.integer("PRAGMA schema_version") == 0) {
        database_.execute(schema::script::schema);
    } else {
        check_trace_tables(database_, path_);
    }
    // With WAL, others can read during writes. If WAL is impossible (some network file systems), SQLite keeps
    // its rollback journal, and readers may have to wait for a moment.
    logs_ = database_.text("PRAGMA journal_mode=WAL") == "wal";
    file_ = FileId::of(path_);
    database_.execute("PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32768; PRAGMA foreign_keys=OFF");
    load_contents();
}

void TraceStore::load_contents() {
    Statement runs = database_.prepare("SELECT id, name, tokenizer_digest, tokenizer FROM run");
    while (runs.step()) {
        contents_.last_run = std::max(contents_.last_run, runs.integer(0));
        contents_.run_names.insert(runs.text(1));
        if (const std::string digest = runs.text(2); !digest.empty()) {
            contents_.tokenizers[digest] = runs.integer(3);
        }
        contents_.last_tokenizer = std::max(contents_.last_tokenizer, runs.integer(3));
    }
    Statement trainings = database_.prepare("SELECT id, name FROM training");
    while (trainings.step()) {
        contents_.last_training = std::max(contents_.last_training, trainings.integer(0));
        contents_.training_names.insert(trainings.text(1));
    }
    contents_.last_sequence = database_.integer("SELECT max(id) FROM sequence");
    next_signal_ = database_.integer("SELECT max(id) FROM signal") + 1;
    next_chunk_ = database_.integer("SELECT max(id) FROM chunk") + 1;
}

Statement& TraceStore::insert(const char* table) {
    return database_.prepared("INSERT" + schema::into(table));
}

Statement& TraceStore::replace(const char* table) {
    return database_.prepared("INSERT OR REPLACE" + schema::into(table));
}

void TraceStore::begin() {
    if (!database_.in_transaction()) {
        database_.execute("BEGIN IMMEDIATE");
    }
}

void TraceStore::take_up(const RunInfo& run) {
    begin();
    run_ = run;
    static_cast<TokenTotals&>(run_) = {};
    run_.sequences = 0;
    run_.complete = false;
    newest_run_ = run_.id;
    run_began_ = std::chrono::steady_clock::now();
    sequence_totals_ = {};
    signals_.clear();
    packed_ = run_.record_level == "scalars";
    compress_ = packed_ || always_compress_;
}

std::vector<SignalInfo> TraceStore::with_packed_tokens(std::vector<SignalInfo> signals) const {
    if (packed_) {
        signals.push_back(packed_token_info());
    }
    return signals;
}

void TraceStore::begin_run(const RunInfo& info, const std::vector<SignalInfo>& signals,
                           const std::optional<ShardInfo>& shard) {
    take_up(info);
    run_.seconds = 0;
    schema::insert_row(insert("run"), run_);
    Statement& insert_signal = insert("signal");
    for (const SignalInfo& signal : with_packed_tokens(signals)) {
        insert_signal.bind(1, next_signal_).bind(2, run_.id);
        schema::insert_row(insert_signal, signal);
        signals_[signal.name] = {next_signal_++, signal.storage};
    }
    if (shard) {
        insert("shard").run(run_.id, shard->rank, shard->world, shard->batch);
    }
}

void TraceStore::begin_sequence(std::int64_t id, const SequenceInfo& info, const std::string& text) {
    begin();
    sequence_totals_ = {};
    sequence_rows_.clear();
    buffers_.clear();
    sequence_ = info;
    sequence_.id = id;
    sequence_.run = run_.id;
    sequence_.number = run_.sequences++;
    sequence_.text_bytes = static_cast<std::int64_t>(text.size());
    sequence_.text_crc32 = crc32_of(bytes_of(text));
    sequence_.tokens_crc32 = 0;
    schema::insert_row(insert("sequence"), sequence_);
    const std::string_view all(text);
    Statement& insert_text = insert("text");
    constexpr auto piece_bytes = static_cast<std::size_t>(schema::text_piece);
    for (std::size_t piece = 0; piece * piece_bytes < all.size(); ++piece) {
        insert_text.run(id << schema::position_bits | static_cast<std::int64_t>(piece),
                        bytes_of(all.substr(piece * piece_bytes, piece_bytes)));
    }
}

void TraceStore::append(const TokenColumns& tokens,
                        const std::vector<std::pair<std::string, SignalChunk>>& signals) {
    begin();
    sequence_totals_.add(tokens);
    if (packed_) {
        const SignalPlace& signal = signals_.at(packed_token_signal);
        buffers_[packed_token_signal].append(
            pack_tokens(tokens), [&](const ChunkBuffer::Piece& piece) { return store_chunk(signal, piece); });
    } else {
        insert_tokens(tokens);
        sequence_rows_.add(tokens);
    }
    for (const auto& [name, chunk] : signals) {
        const SignalPlace& signal = signals_.at(name);
        const auto store = [&](const ChunkBuffer::Piece& piece) { return store_chunk(signal, piece); };
        if (signal.storage == SignalStorage::trimmed) {
            ChunkBuffer::put_trimmed(chunk, store);
        } else {
            buffers_[name].append(chunk, store);
        }
    }
}

void TraceStore::insert_tokens(const TokenColumns& tokens) {
    Statement& insert_token = insert("token_row");
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::int64_t position = tokens.first + static_cast<std::int64_t>(i);
        int at = 1;
        insert_token.bind(at, sequence_.id << schema::position_bits | position);
        schema::each_token_number(tokens, i, [&](const auto number) { insert_token.bind(++at, number); });
        insert_token.run();
    }
}

void TraceStore::write_sequence() {
    if (sequence_.id == 0) {
        return;
    }
    flush_tails();
    static_cast<TokenTotals&>(sequence_) = sequence_totals_.totals();
    sequence_.tokens_crc32 = packed_ ? -1 : sequence_rows_.value(); // packed tokens have no rows
    schema::insert_row(replace("sequence"), sequence_);
}

void TraceStore::write_run(double seconds) {
    if (run_.id == 0) {
        return;
    }
    const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - run_began_;
    RunInfo row = run_;
    row += sequence_totals_.totals();
    row.seconds += seconds >= 0 ? seconds : so_far.count();
    schema::insert_row(replace("run"), row);
}

void TraceStore::end_sequence(bool complete) {
    begin();
    sequence_.complete = complete;
    write_sequence();
    run_ += sequence_totals_.totals();
    sequence_totals_ = {};
    sequence_ = {};
    buffers_.clear();
}

void TraceStore::put_labels(const std::vector<TextLabel>& labels) {
    begin();
    Statement& insert_label = insert("label");
    for (const TextLabel& label : labels) {
        insert_label.run(sequence_.id, label.begin, label.end, label.name);
    }
}

void TraceStore::put_text_digest(const std::string& digest) {
    begin();
    run_.text_digest = digest;
}

void TraceStore::put_vocabulary(std::int64_t tokenizer,
                                const std::vector<std::pair<std::int32_t, std::string>>& token_bytes) {
    begin();
    Statement& insert_word =
        database_.prepared("INSERT OR IGNORE INTO vocabulary (tokenizer, id, bytes, crc32) VALUES (?,?,?,?)");
    for (const auto& [id, bytes] : token_bytes) {
        insert_word.run(tokenizer, id, bytes_of(bytes), crc32_of(bytes_of(bytes)));
    }
}

void TraceStore::put_fault(std::int64_t run, std::int64_t sequence, const std::string& time,
                           const std::string& message) {
    begin();
    const FaultInfo row{run, sequence, time, message};
    schema::insert_row(insert("fault"), row);
}

void TraceStore::end_run(double seconds, bool complete) {
    begin();
    run_.complete = complete;
    write_run(seconds);
    run_ = {};
}

TraceStore::Resumed TraceStore::resume_run(std::int64_t run, const std::vector<SignalInfo>& signals) {
    begin();
    const auto damaged = [&](const std::string& expected, const std::string& found) {
        throw InputError(ErrorId::trace_damaged, path_, expected, found, "record the run again");
    };
    {
        Statement row = database_.prepare("SELECT " + schema::columns_of("run") + " FROM run WHERE id = ?");
        if (!row.bind(1, run).step()) {
            throw InputError(ErrorId::trace_run, path_, "run " + std::to_string(run) + " to resume",
                             "no such run", "record it again");
        }
        take_up(schema::read_row<RunInfo>(row, damaged));
    }
    std::vector<std::int64_t> unfinished;
    {
        Statement rows = database_.prepare("SELECT " + schema::columns_of("sequence") +
                                           " FROM sequence WHERE run = ? ORDER BY number");
        rows.bind(1, run);
        while (rows.step()) {
            const auto sequence = schema::read_row<SequenceInfo>(rows, damaged);
            if (!sequence.complete || !unfinished.empty()) {
                unfinished.push_back(sequence.id);
                continue;
            }
            // Added in recorded order, so that the sums equal those of an uninterrupted run.
            run_ += sequence;
            ++run_.sequences;
        }
    }
    for (const std::int64_t sequence : unfinished) {
        delete_contents(database_, sequence);
        database_.execute("DELETE FROM sequence WHERE id = " + std::to_string(sequence));
    }
    database_.execute("DELETE FROM fault WHERE run = " + std::to_string(run));
    for (const SignalInfo& signal : with_packed_tokens(signals)) {
        Statement find = database_.prepare("SELECT id FROM signal WHERE run = ? AND name = ?");
        find.bind_all(run, signal.name);
        if (find.step()) {
            signals_[signal.name] = {find.integer(0), signal.storage};
        }
    }
    write_run();
    return {run_.sequences, database_.integer("SELECT max(id) FROM sequence"), run_.tokenizer, packed_};
}

std::int64_t TraceStore::store_chunk(const SignalPlace& signal, const ChunkBuffer::Piece& piece) {
    const std::vector<std::byte> packed = compress_ || signal.storage == SignalStorage::compressed
                                              ? compress_values(piece.data, piece.tokens)
                                              : std::vector<std::byte>();
    const std::span<const std::byte> data = packed.empty() ? piece.data : packed;
    const std::string dtype =
        std::string(name_of(piece.dtype)) + std::string(packed.empty() ? "" : compressed_suffix);
    const std::int64_t crc = crc32_of(data);
    if (piece.row != 0) {
        database_.prepared("UPDATE chunk SET tokens=?, shape=?, data=?, crc32=?, dtype=? WHERE id=?")
            .run(piece.tokens, piece.shape, data, crc, dtype, piece.row);
        return piece.row;
    }
    insert("chunk").run(next_chunk_, sequence_.id, signal.id, piece.first_token, piece.tokens, dtype,
                        piece.shape, data, crc);
    return next_chunk_++;
}

void TraceStore::flush_tails() {
    for (auto& [name, buffer] : buffers_) {
        const SignalPlace& signal = signals_.at(name);
        buffer.flush([&](const ChunkBuffer::Piece& piece) { return store_chunk(signal, piece); });
    }
}

void TraceStore::begin_training(const TrainingInfo& info, const std::vector<TrainingQuantity>& quantities) {
    begin();
    TrainingInfo row = info;
    row.step = row.tokens = 0;
    row.seconds = 0;
    row.complete = false;
    row.fault.clear();
    schema::insert_row(insert("training"), row);
    Statement& insert_quantity = insert("training_quantity");
    for (const TrainingQuantity& quantity : quantities) {
        insert_quantity.bind(1, info.id);
        schema::insert_row(insert_quantity, quantity);
    }
}

void TraceStore::put_points(std::int64_t training, const TrainingMoment& moment,
                            const std::vector<TrainingValue>& values) {
    begin();
    Statement& insert_point = database_.prepared(
        "INSERT OR REPLACE INTO training_point (training, step, quantity, place, tokens, seconds, value) "
        "VALUES (?,?,?,?,?,?,?)");
    for (const TrainingValue& value : values) {
        insert_point.run(training, moment.step, value.quantity, value.place, moment.tokens, moment.seconds,
                         value.value);
    }
    database_.prepare("UPDATE training SET step=?, tokens=?, seconds=?, complete=0, fault='' WHERE id=?")
        .run(moment.step, moment.tokens, moment.seconds, training);
}

void TraceStore::end_training(std::int64_t training, bool complete, const std::string& fault) {
    begin();
    database_.prepare("UPDATE training SET complete=?, fault=? WHERE id=?").run(complete, fault, training);
}

void TraceStore::cut_training(std::int64_t training, std::int64_t step) {
    begin();
    const std::string of = " WHERE training = " + std::to_string(training);
    const std::string after = std::to_string(step);
    const std::string points = " FROM training_point" + of;
    database_.execute("DELETE" + points + " AND step > " + after);
    const auto newest = [&](const char* column) {
        return std::string("coalesce((SELECT max(") + column + ")" + points + "), 0)";
    };
    database_.execute("UPDATE training SET complete = 0, fault = '', step = " + newest("step") +
                      ", tokens = " + newest("tokens") + ", seconds = " + newest("seconds") +
                      " WHERE id = " + std::to_string(training));
}

void TraceStore::commit() {
    if (!dirty()) {
        return;
    }
    write_sequence();
    write_run();
    database_.execute("COMMIT");
    committed_ = true;
    keep_file();
}

void TraceStore::finish() {
    commit();
    keep_file();
    // Earlier commits did not wait for the disk. This one does, and makes the earlier ones durable, too, even
    // if a reader keeps the log from being copied into the trace.
    database_.execute("PRAGMA synchronous=FULL; PRAGMA user_version=" + std::to_string(schema::version));
    database_.make_single_file(250);
}

void TraceStore::end_with_fault(const std::string& message) noexcept {
    try {
        // The roll-back may have removed the run. A run that has ended gets no fault.
        const std::int64_t run = database_.integer("SELECT id FROM run WHERE complete = 0 AND id = " +
                                                   std::to_string(newest_run_));
        if (run == 0) {
            return;
        }
        put_fault(run, -1, utc_now(), message);
        database_.execute("COMMIT");
    } catch (const std::exception&) {
        roll_back();
    }
}

void TraceStore::roll_back() noexcept {
    try {
        if (database_.in_transaction()) {
            database_.execute("ROLLBACK");
        }
    } catch (const std::exception&) {
        // SQLite rolls back by itself when the connection closes.
    }
}

} // namespace ponderscope
