// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/writing/store.h"

#include "core/base/error.h"
#include "core/trace/packed_values.h"
#include "core/trace/rows.h"

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
        create();
    } else {
        check_trace_tables(database_, path_);
    }
    // WAL lets others read while this writes. Where it is impossible (some network file systems) SQLite stays
    // with its rollback journal: readers then wait for a moment, nothing else changes.
    logs_ = database_.text("PRAGMA journal_mode=WAL") == "wal";
    file_ = FileId::of(path_);
    database_.execute("PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32768; PRAGMA foreign_keys=OFF");
    load_contents();
    prepare_statements();
}

void TraceStore::create() {
    database_.execute("PRAGMA page_size=" + std::to_string(schema::page_size));
    database_.execute("BEGIN IMMEDIATE");
    database_.execute("PRAGMA application_id=" + std::to_string(schema::application_id) +
                      "; PRAGMA user_version=" + std::to_string(schema::version));
    database_.execute(schema::create_statements());
    database_.execute("COMMIT");
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

void TraceStore::prepare_statements() {
    insert_run_ = database_.prepare(schema::insert_into("run"));
    update_run_ = database_.prepare(
        "UPDATE run SET seconds=?, complete=?, sequences=?, tokens=?, scored_tokens=?, nll_sum=?, "
        "steps_sum=?, flops_sum=?, scored_bytes=? WHERE id=?");
    insert_sequence_ = database_.prepare(schema::insert_into("sequence"));
    update_sequence_ = database_.prepare(
        "UPDATE sequence SET complete=?, tokens=?, scored_tokens=?, nll_sum=?, steps_sum=?, "
        "flops_sum=?, scored_bytes=?, tokens_crc32=? WHERE id=?");
    insert_text_ = database_.prepare(schema::insert_into("text"));
    insert_token_ = database_.prepare(schema::insert_into("token_row"));
    insert_signal_ = database_.prepare(schema::insert_into("signal"));
    insert_chunk_ = database_.prepare(schema::insert_into("chunk"));
    update_chunk_ =
        database_.prepare("UPDATE chunk SET tokens=?, shape=?, data=?, crc32=?, dtype=? WHERE id=?");
    insert_vocabulary_ =
        database_.prepare("INSERT OR IGNORE INTO vocabulary (tokenizer, id, bytes, crc32) VALUES (?,?,?,?)");
    insert_fault_ = database_.prepare(schema::insert_into("fault"));
    insert_label_ = database_.prepare(schema::insert_into("label"));
    prepare_training_statements();
}

void TraceStore::begin() {
    if (!database_.in_transaction()) {
        database_.execute("BEGIN IMMEDIATE");
    }
}

void TraceStore::take_up(std::int64_t run, const std::string& record_level) {
    begin();
    newest_run_ = run_ = run;
    run_began_ = std::chrono::steady_clock::now();
    run_seconds_ = -1;
    run_seconds_before_ = 0;
    run_complete_ = false;
    run_sequences_ = 0;
    run_totals_ = {};
    sequence_totals_ = {};
    signals_.clear();
    packed_ = record_level == "scalars";
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
    take_up(info.id, info.record_level);
    RunInfo row = info; // of a copy, with the totals of the other run
    static_cast<TokenTotals&>(row) = {};
    row.sequences = 0;
    row.seconds = 0;
    row.complete = false;
    schema::bind_row(insert_run_, row);
    insert_run_.run();

    for (const SignalInfo& signal : with_packed_tokens(signals)) {
        schema::bind_row(insert_signal_, signal);
        insert_signal_.bind(1, next_signal_).bind(2, run_);
        insert_signal_.run();
        signals_[signal.name] = {next_signal_++, signal.storage};
    }
    if (shard) {
        database_.prepare(schema::insert_into("shard")).run(run_, shard->rank, shard->world, shard->batch);
    }
}

void TraceStore::begin_sequence(std::int64_t id, const SequenceInfo& info, const std::string& text) {
    begin();
    sequence_ = id;
    sequence_complete_ = false;
    sequence_totals_ = {};
    sequence_rows_.clear();
    buffers_.clear();
    SequenceInfo row = info;
    row.id = id;
    row.run = run_;
    row.number = run_sequences_;
    row.text_bytes = static_cast<std::int64_t>(text.size());
    row.text_crc32 = crc32_of(bytes_of(text));
    row.tokens_crc32 = 0;
    schema::bind_row(insert_sequence_, row);
    insert_sequence_.run();
    ++run_sequences_;
    const std::string_view all(text);
    constexpr auto piece_bytes = static_cast<std::size_t>(schema::text_piece);
    for (std::size_t piece = 0; piece * piece_bytes < all.size(); ++piece) {
        insert_text_.run(id << schema::position_bits | static_cast<std::int64_t>(piece),
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
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::int64_t position = tokens.first + static_cast<std::int64_t>(i);
        int at = 1;
        insert_token_.bind(at, sequence_ << schema::position_bits | position);
        schema::each_token_number(tokens, i, [&](const auto number) { insert_token_.bind(++at, number); });
        insert_token_.run();
    }
}

void TraceStore::write_sequence_totals() {
    if (sequence_ == 0) {
        return;
    }
    flush_tails();
    const TokenTotals& t = sequence_totals_.totals();
    update_sequence_.bind_all(sequence_complete_, t.tokens, t.scored_tokens, t.nll_sum, t.steps_sum,
                              t.flops_sum, t.scored_bytes, sequence_rows_.value(), sequence_);
    if (packed_) {
        update_sequence_.bind_null(8); // it has no rows
    }
    update_sequence_.run();
}

void TraceStore::write_run_totals() {
    if (run_ == 0) {
        return;
    }
    const double so_far =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - run_began_).count();
    TokenTotals t = run_totals_;
    t += sequence_totals_.totals();
    update_run_.run(run_seconds_before_ + (run_seconds_ >= 0 ? run_seconds_ : so_far), run_complete_,
                    run_sequences_, t.tokens, t.scored_tokens, t.nll_sum, t.steps_sum, t.flops_sum,
                    t.scored_bytes, run_);
}

void TraceStore::end_sequence(bool complete) {
    begin();
    sequence_complete_ = complete;
    write_sequence_totals();
    run_totals_ += sequence_totals_.totals();
    sequence_totals_ = {};
    sequence_ = 0;
    buffers_.clear();
}

void TraceStore::put_labels(const std::vector<TextLabel>& labels) {
    begin();
    for (const TextLabel& label : labels) {
        insert_label_.run(sequence_, label.begin, label.end, label.name);
    }
}

void TraceStore::put_text_digest(const std::string& digest) {
    begin();
    database_.prepare("UPDATE run SET text_digest=? WHERE id=?").run(digest, run_);
}

void TraceStore::put_vocabulary(std::int64_t tokenizer,
                                const std::vector<std::pair<std::int32_t, std::string>>& token_bytes) {
    begin();
    for (const auto& [id, bytes] : token_bytes) {
        insert_vocabulary_.run(tokenizer, id, bytes_of(bytes), crc32_of(bytes_of(bytes)));
    }
}

void TraceStore::put_fault(std::int64_t run, std::int64_t sequence, const std::string& time,
                           const std::string& message) {
    begin();
    const FaultInfo row{run, sequence, time, message};
    schema::bind_row(insert_fault_, row);
    insert_fault_.run();
}

void TraceStore::end_run(double seconds, bool complete) {
    begin();
    run_seconds_ = seconds;
    run_complete_ = complete;
    write_run_totals();
    run_ = 0;
}

void TraceStore::commit() {
    if (!dirty()) {
        return;
    }
    write_sequence_totals();
    write_run_totals();
    database_.execute("COMMIT");
    committed_ = true;
    keep_file();
}

void TraceStore::finish() {
    commit();
    keep_file();
    // Commits do not wait for the disk. The last one does, and takes those before it along: who reads at this
    // moment can keep the log from being copied into the trace.
    database_.execute("PRAGMA synchronous=FULL; PRAGMA user_version=" + std::to_string(schema::version));
    database_.make_single_file(250);
}

void TraceStore::end_with_fault(const std::string& message) noexcept {
    try {
        // The run may have been rolled back, and one that ended before is not to blame.
        const std::int64_t run = database_.integer("SELECT id FROM run WHERE complete = 0 AND id = " +
                                                   std::to_string(newest_run_));
        if (run == 0) {
            return;
        }
        put_fault(run, -1, utc_now(), message);
        database_.execute("COMMIT");
    } catch (const std::exception&) { // of SQLite, or no memory either
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
