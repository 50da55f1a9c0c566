// SPDX-License-Identifier: GPL-3.0-or-later
// FileTrace: opening, and rows.
#include "core/trace/trace_file.h"

#include "core/base/world.h"
#include "core/remote/address.h"
#include "core/trace/packed_values.h"
#include "core/trace/rows.h"

#include <algorithm>
#include <map>

namespace ponderscope {
namespace {

bool is_packed_token_signal(const SignalInfo& info) {
    return info.name == packed_token_signal && info.axes == packed_token_info().axes;
}

} // namespace

FileTrace::FileTrace(std::filesystem::path path, Database::Access access)
    : path_(std::move(path)), database_(path_, access) {
    database_.execute(
        "PRAGMA query_only=ON; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-16384");
    // The first access to the file: SQLite locks it and reads log and header.
    if (database_.integer("PRAGMA application_id") != schema::application_id ||
        database_.integer("PRAGMA user_version") != schema::version) {
        throw InputError(ErrorId::trace_damaged, path_,
                         "a trace of version " + std::to_string(schema::version),
                         "a write-ahead log with another header", take_again);
    }
    check_trace_tables(database_, path_);
}

std::unique_ptr<FileTrace> FileTrace::open(const std::filesystem::path& path) {
    check_trace_header(path);
    try {
        return with_read_access([&](Database::Access access) {
            auto trace = std::make_unique<FileTrace>(path, access);
            std::error_code error;
            const std::filesystem::path log = path.string() + "-wal";
            if (access == Database::Access::read_immutable && std::filesystem::file_size(log, error) > 0 &&
                !error) {
                trace->notices_.push_back(
                    {NoticeId::trace_log,
                     log.string() + " cannot be used in this folder, so the newest data is missing. Copy the "
                                    "trace and all files beside it to a writable folder with free space."});
            }
            return trace;
        });
    } catch (const SqliteFailure& failure) {
        throw_read_failure(path, failure);
    }
}

std::shared_ptr<const void> FileTrace::pin_snapshot() const {
    // A trace on another machine is not pinned: each call begins its own transaction.
    if (database_.in_transaction() || remote::is_remote(path_)) {
        return nullptr;
    }
    auto transaction = std::make_unique<std::optional<ReadTransaction>>();
    try {
        transaction->emplace(database_);
        known_bytes_ = 0;
    } catch (const SqliteFailure& failure) {
        throw_read_failure(path_, failure);
    }
    pinned_ = true;
    return {transaction.release(), [this](const std::optional<ReadTransaction>* ended) {
                pinned_ = false;
                delete ended;
            }};
}

std::int64_t FileTrace::file_bytes() const {
    if (known_bytes_ == 0) {
        known_bytes_ = database_.integer("PRAGMA page_count") * database_.integer("PRAGMA page_size");
    }
    return known_bytes_;
}

std::int64_t FileTrace::plausible(std::int64_t count, std::int64_t least_bytes_each, const char* what) const {
    if (count < 0 || (least_bytes_each > 0 && count > file_bytes() / least_bytes_each)) {
        damaged(std::string("a number of ") + what + " that fits into the file", std::to_string(count));
    }
    return count;
}

template <class Row>
std::vector<Row> FileTrace::read_rows(const char* table, const std::string& where) const {
    std::vector<Row> all;
    Statement rows =
        database_.prepare("SELECT " + schema::columns_of(table) + " FROM " + table + " " + where);
    while (rows.step()) {
        all.push_back(schema::read_row<Row>(rows, [&](const std::string& expected, const std::string& found) {
            damaged(expected + " in the table " + table, found);
        }));
    }
    return all;
}

void FileTrace::check_run(const RunInfo& run) const {
    if (run.tokens < 0 || run.scored_tokens < 0 || run.scored_tokens > run.tokens || run.sequences < 0) {
        damaged("counts that agree in run " + std::to_string(run.id),
                std::to_string(run.scored_tokens) + " scored of " + std::to_string(run.tokens) +
                    " tokens in " + std::to_string(run.sequences) + " sequences");
    }
    plausible_tokens(run.tokens, run.record_level == "scalars");
}

std::vector<RunInfo> FileTrace::unchecked_runs() const {
    return read([&] { return read_rows<RunInfo>("run", "ORDER BY id"); });
}

std::vector<RunInfo> FileTrace::runs() const {
    return read([&] {
        std::vector<RunInfo> runs = unchecked_runs();
        for (const RunInfo& run : runs) {
            check_run(run);
        }
        return runs;
    });
}

bool FileTrace::is_packed(std::int64_t run) const {
    Statement& find = database_.prepared("SELECT 1 FROM run WHERE id = ? AND record_level = 'scalars'");
    const StatementReset reset{find};
    return find.bind(1, run).step();
}

std::vector<SequenceInfo> FileTrace::sequences(std::int64_t run) const {
    return read([&] {
        std::vector<SequenceInfo> sequences =
            read_rows<SequenceInfo>("sequence", "WHERE run = " + std::to_string(run) + " ORDER BY number");
        const bool packed = is_packed(run);
        for (std::size_t i = 0; i < sequences.size(); ++i) {
            plausible_tokens(sequences[i].tokens, packed);
            if (sequences[i].number != static_cast<std::int64_t>(i)) {
                damaged("sequence " + std::to_string(i) + " of run " + std::to_string(run),
                        "number " + std::to_string(sequences[i].number));
            }
        }
        return sequences;
    });
}

std::vector<SignalInfo> FileTrace::signal_infos(std::int64_t run) const {
    return read([&] {
        std::vector<SignalInfo> signals =
            read_rows<SignalInfo>("signal", "WHERE run = " + std::to_string(run) + " ORDER BY id");
        for (const SignalInfo& info : signals) {
            const auto is_axis = [](const std::string& axis) { return schema::is_name(axis); };
            if (!schema::is_name(info.name) || info.axes.front() != "token" ||
                !std::all_of(info.axes.begin(), info.axes.end(), is_axis)) {
                damaged("a name and axes of signal " + info.name +
                            " of letters, digits, _ . and -, the first axis token",
                        info.axes.front());
            }
        }
        std::erase_if(signals, is_packed_token_signal);
        return signals;
    });
}

std::optional<ShardInfo> FileTrace::shard(std::int64_t run) const {
    return read([&]() -> std::optional<ShardInfo> {
        Statement row = database_.prepare("SELECT rank, world, batch FROM shard WHERE run = ?");
        row.bind(1, run);
        if (!row.step()) {
            return std::nullopt;
        }
        const ShardInfo info{row.integer(0), row.integer(1), row.integer(2)};
        if (info.rank < 0 || info.rank >= info.world || info.world > most_processes || info.batch < 1) {
            damaged("a place in a world of processes",
                    "rank " + std::to_string(info.rank) + " of " + std::to_string(info.world));
        }
        return info;
    });
}

std::vector<std::pair<std::int64_t, TextLabel>> FileTrace::labels(std::int64_t run) const {
    return read([&] {
        std::vector<std::pair<std::int64_t, TextLabel>> labels;
        Statement rows = database_.prepare(
            "SELECT s.number, s.text_bytes, l.text_begin, l.text_end, l.class FROM sequence s JOIN label l "
            "ON l.sequence = s.id WHERE s.run = ? ORDER BY s.number, l.text_begin");
        rows.bind(1, run);
        while (rows.step()) {
            const std::int64_t begin = rows.integer(2);
            const std::int64_t end = rows.integer(3);
            if (begin < 0 || end <= begin || end > rows.integer(1)) {
                damaged("labels within the text of sequence " + std::to_string(rows.integer(0)),
                        "one of bytes " + std::to_string(begin) + " to " + std::to_string(end));
            }
            labels.push_back(
                {rows.integer(0),
                 {static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end), rows.text(4)}});
        }
        return labels;
    });
}

std::string FileTrace::token_bytes(std::int64_t run, std::int32_t id) const {
    return read([&] {
        Statement& rows = database_.prepared("SELECT v.bytes FROM run r JOIN vocabulary v ON v.tokenizer = "
                                             "r.tokenizer WHERE r.id = ? AND v.id = ?");
        const StatementReset reset{rows};
        rows.bind_all(run, id);
        return rows.step() ? rows.bytes(0) : std::string();
    });
}

std::vector<std::pair<std::int32_t, std::string>> FileTrace::vocabulary(std::int64_t run) const {
    return read([&] {
        std::vector<std::pair<std::int32_t, std::string>> words;
        Statement rows = database_.prepare("SELECT v.id, v.bytes FROM run r JOIN vocabulary v ON "
                                           "v.tokenizer = r.tokenizer WHERE r.id = ? ORDER BY v.id");
        rows.bind(1, run);
        while (rows.step()) {
            const std::int64_t id = rows.integer(0);
            if (!std::in_range<std::int32_t>(id)) {
                damaged("token ids of 32 bits in the vocabulary", std::to_string(id));
            }
            words.emplace_back(static_cast<std::int32_t>(id), rows.bytes(1));
        }
        return words;
    });
}

std::vector<FaultInfo> FileTrace::faults(std::int64_t run) const {
    return read(
        [&] { return read_rows<FaultInfo>("fault", "WHERE run = " + std::to_string(run) + " ORDER BY id"); });
}

std::vector<TrainingInfo> FileTrace::trainings() const {
    return read([&] {
        std::vector<TrainingInfo> trainings = read_rows<TrainingInfo>("training", "ORDER BY id");
        for (const TrainingInfo& info : trainings) {
            if (info.id < 1 || info.parameters < 0 || info.max_steps < 0 || info.planned_steps < 0 ||
                info.planned_tokens < 0 || info.step < 0 || info.tokens < 0 ||
                info.max_steps >= max_training_places) {
                damaged("counts that a training can have", "others in training " + std::to_string(info.id));
            }
        }
        return trainings;
    });
}

std::vector<TrainingQuantity> FileTrace::training_quantities(std::int64_t training) const {
    return read([&] {
        return read_rows<TrainingQuantity>("training_quantity",
                                           "WHERE training = " + std::to_string(training) + " ORDER BY name");
    });
}

std::vector<TrainingCurve> FileTrace::training_curves(std::int64_t training) const {
    return read([&] {
        std::map<std::pair<std::string, std::int64_t>, TrainingCurve> curves; // by quantity and place
        Statement rows = database_.prepare("SELECT step, quantity, place, tokens, seconds, value FROM "
                                           "training_point WHERE training = ? ORDER BY step");
        rows.bind(1, training);
        while (rows.step()) {
            const std::int64_t step = rows.integer(0);
            const std::int64_t place = rows.integer(2);
            const std::int64_t tokens = rows.integer(3);
            if (step < 0 || tokens < 0 || place < 0 || place >= max_training_places) {
                damaged("points that a training can have", "step " + std::to_string(step) + ", place " +
                                                               std::to_string(place) + ", " +
                                                               std::to_string(tokens) + " tokens");
            }
            const std::string quantity = rows.text(1);
            TrainingCurve& curve = curves[{quantity, place}];
            curve.quantity = quantity;
            curve.place = place;
            curve.step.push_back(step);
            curve.tokens.push_back(tokens);
            curve.seconds.push_back(rows.real(4));
            curve.value.push_back(rows.real(5));
        }
        std::vector<TrainingCurve> sorted;
        sorted.reserve(curves.size());
        for (auto& [name, curve] : curves) {
            sorted.push_back(std::move(curve));
        }
        return sorted;
    });
}

} // namespace ponderscope
