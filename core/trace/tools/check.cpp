// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/check.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/trace/rows.h"
#include "core/trace/signal_sums.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/tools/check_sequence.h"
#include "core/trace/tools/kept_digests.h"
#include "core/trace/trace_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace ponderscope {
namespace {

/// A SELECT of what breaks a promise, by its name, and what is wrong with it.
struct Invariant {
    const char* broken;
    const char* message;
};
constexpr Invariant invariants[] = {
    {"SELECT 'sequence.id ' || id FROM sequence WHERE run NOT IN (SELECT id FROM run)",
     "belongs to a run that is not there"},
    {"SELECT 'signal.id ' || id FROM signal WHERE run NOT IN (SELECT id FROM run)",
     "belongs to a run that is not there"},
    {"SELECT 'fault.id ' || f.id FROM fault f LEFT JOIN run r ON r.id = f.run WHERE r.id IS NULL OR "
     "f.sequence < 0 OR f.sequence >= r.sequences",
     "names a run or a sequence that is not there"},
    {"SELECT 'chunk.id ' || c.id FROM chunk c LEFT JOIN sequence s ON s.id = c.sequence LEFT JOIN signal g "
     "ON g.id = c.signal WHERE s.id IS NULL OR g.id IS NULL OR s.run <> g.run",
     "belongs to no sequence and signal of one run"},
    {"SELECT 'chunk.id ' || c.id FROM chunk c JOIN signal g ON g.id = c.signal WHERE c.dtype NOT IN "
     "(g.dtype, g.dtype || '+zstd')",
     "has another dtype than its signal"},
    {"SELECT 'run.id ' || min(id) FROM run GROUP BY name HAVING count(*) > 1",
     "has a name that another run has too"},
    {"SELECT 'signal.id ' || min(id) FROM signal GROUP BY run, name HAVING count(*) > 1",
     "has a name that another signal of its run has too"},
    {"SELECT 'sequence.id ' || id FROM (SELECT id, number, row_number() OVER (PARTITION BY run ORDER BY "
     "number) - 1 AS due FROM sequence) WHERE number <> due",
     "has another number than its place in the run"},
    {"SELECT 'sequence.id ' || id FROM (SELECT id, joined_number, lag(joined_number) OVER (PARTITION BY run "
     "ORDER BY number) AS before FROM sequence WHERE joined_number IS NOT NULL) WHERE joined_number <= "
     "before",
     "has a joined_number that is not above that of the sequence before it"},
    {"SELECT 'run.id ' || r.id FROM run r WHERE r.sequences <> (SELECT count(*) FROM sequence s WHERE s.run "
     "= r.id)",
     "has another number of sequences than there are"},
    {"SELECT 'run.id ' || r.id FROM run r WHERE r.tokenizer_digest <> '' AND r.tokens > 0 AND NOT EXISTS "
     "(SELECT 1 FROM vocabulary v WHERE v.tokenizer = r.tokenizer)",
     "has a tokenizer_digest, and vocabulary has no row of its tokenizer"},
    {"SELECT 'text.row ' || t.row FROM text t JOIN sequence s ON s.id = t.row >> 32 WHERE length(t.bytes) <> "
     "min(4000, s.text_bytes - 4000 * (t.row & 4294967295)) OR length(t.bytes) = 0",
     "is a piece of another length than is due in its place"},
    {"SELECT DISTINCT 'a label of sequence.id ' || sequence FROM label WHERE sequence NOT IN (SELECT id FROM "
     "sequence)",
     "belongs to no sequence"},
    {"SELECT 'a label of sequence.id ' || l.sequence FROM (SELECT *, lag(text_end) OVER (PARTITION BY "
     "sequence ORDER BY text_begin) AS before FROM label) l JOIN sequence s ON s.id = l.sequence WHERE "
     "l.text_begin < coalesce(l.before, 0) OR l.text_end <= l.text_begin OR l.text_end > s.text_bytes",
     "is empty, overlaps another or leaves the text"},
    {"SELECT 'training.id ' || min(id) FROM training GROUP BY name HAVING count(*) > 1",
     "has a name that another training has too"},
    {"SELECT DISTINCT 'a quantity of training.id ' || training FROM training_quantity WHERE training NOT IN "
     "(SELECT id FROM training)",
     "belongs to no training"},
    {"SELECT DISTINCT 'points of ' || p.quantity || ' of training.id ' || p.training FROM training_point p "
     "LEFT JOIN training_quantity q ON q.training = p.training AND q.name = p.quantity WHERE q.name IS NULL",
     "are of a quantity that training_quantity has not"},
    {"SELECT DISTINCT 'points of training.id ' || training FROM training_point WHERE step < 0 OR place < 0 "
     "OR "
     "tokens < 0 OR seconds < 0",
     "have a step, place, tokens or seconds below 0"},
    {"SELECT 'training.id ' || t.id FROM training t WHERE t.step <> coalesce((SELECT max(p.step) FROM "
     "training_point p WHERE p.training = t.id), t.step)",
     "has another step than its last point"},
    {"SELECT 'run.id ' || id FROM run WHERE training <> 0 AND training NOT IN (SELECT id FROM training)",
     "names a training that is not there"},
};

std::string with_column(std::string sql, const std::string& column) {
    for (std::size_t at = sql.find('?'); at != std::string::npos; at = sql.find('?', at + column.size())) {
        sql.replace(at, 1, column);
    }
    return sql;
}

/// The whole of a trace; faults go to a FaultList.
class TraceChecker {
public:
    TraceChecker(FaultList& faults, const TraceReader& reader, Database& database, TraceCheck& result,
                 const ProgressSink& progress, const std::stop_token& stop)
        : faults_(faults),
          reader_(reader),
          database_(database),
          result_(result),
          progress_(progress),
          stop_(stop) {}

    void run() {
        if (const std::string pages = database_.text("PRAGMA quick_check(1)"); pages != "ok") {
            faults_.add({}, "the database is damaged (" + printable(pages, 200) + ")");
        }
        check_structure();
        for (const schema::Table& table : schema::tables()) {
            check_rules(table);
        }
        for (const Invariant& invariant : invariants) {
            Statement rows = database_.prepare(invariant.broken);
            while (rows.step()) {
                faults_.add({}, printable(rows.text(0), 100) + " " + invariant.message);
            }
        }
        check_rows_of_sequences("token_row");
        check_rows_of_sequences("text");
        faults_.guard({}, [&] {
            const std::vector<RunInfo> runs = reader_.runs();
            for (const RunInfo& info : runs) {
                all_tokens_ += info.tokens;
            }
            for (const RunInfo& info : runs) {
                check_run(info);
            }
        });
    }

private:
    void check_structure() {
        for (const schema::Table& table : schema::tables()) {
            Statement entry =
                database_.prepare("SELECT strict FROM pragma_table_list WHERE schema = 'main' AND name = ?");
            entry.bind(1, std::string_view(table.name));
            if (entry.step() && entry.integer(0) != 1) {
                faults_.add({}, std::string("table ") + table.name +
                                    " is not STRICT, so that types are not kept");
            }
        }
        for (const schema::View& view : schema::views()) {
            Statement entry = database_.prepare("SELECT type FROM sqlite_schema WHERE name = ?");
            entry.bind(1, std::string_view(view.name));
            if (!entry.step()) {
                faults_.add({}, std::string("there is no view ") + view.name);
            } else if (entry.text(0) != "view") {
                faults_.add({}, std::string(view.name) + " is a " + entry.text(0) + " and no view");
            }
        }
    }

    /// Of each column by itself.
    void check_rules(const schema::Table& table) {
        for (const schema::Column& column : table.columns) {
            if (column.rule == nullptr) {
                continue;
            }
            const std::string name = schema::name_in_sql(column);
            Statement rows =
                database_.prepare("SELECT " + schema::name_in_sql(table.columns[0]) + ", " + name + " FROM " +
                                  table.name + " WHERE NOT (" + with_column(column.rule->sql, name) + ")");
            while (rows.step()) {
                faults_.add(std::string(table.name) + " " + printable(rows.text(0), 20),
                            std::string(column.name) + " is \"" + printable(rows.text(1), 70) + "\", not " +
                                column.rule->words);
            }
        }
    }

    /// Rows of a table that is numbered by sequence belong to one. Step by step from sequence to sequence:
    /// the rows of each are a range.
    void check_rows_of_sequences(const std::string& table) {
        Statement find = database_.prepare("SELECT row >> 32 FROM " + table +
                                           " WHERE row >= ?1 << 32 ORDER BY row LIMIT 1");
        Statement known = database_.prepare("SELECT 1 FROM sequence WHERE id = ?");
        for (std::int64_t id = 0; id <= schema::max_sequence_id; ++id) {
            const StatementReset found_reset{find};
            const StatementReset known_reset{known};
            find.bind(1, id);
            if (!find.step()) {
                break;
            }
            id = find.integer(0);
            known.bind(1, id);
            if (!known.step()) {
                faults_.add({}, table + " has rows of sequence.id " + std::to_string(id) +
                                    ", which is not there");
            }
        }
        if (database_.integer("SELECT count(*) FROM (SELECT 1 FROM " + table + " WHERE row < 0 LIMIT 1)") !=
            0) {
            faults_.add({}, table + " has rows below 0");
        }
    }

    void check_run(const RunInfo& info) {
        const std::string place = "run " + std::to_string(info.id) + " (" + printable(info.name, 60) + ")";
        each_digest(database_, info.id, [&](const DigestedPart& part) {
            stop_here();
            result_.chunks += part.is_chunk ? 1 : 0;
            result_.without_digest += part.due ? 0 : 1;
            if (part.due && *part.due != part.found) {
                faults_.add(place, part.name + " is not what was recorded: the CRC-32 is " +
                                       std::to_string(part.found) + " where " + std::to_string(*part.due) +
                                       " is due");
            }
        });
        ++result_.runs;
        faults_.guard(place, [&] {
            const std::vector<SignalInfo> signals = reader_.signal_infos(info.id);
            check_sums(info, place, signals);
            RunCheck run(faults_, reader_, info, place, signals, stop_);
            TokenTotals of_run;
            for (const SequenceInfo& sequence : reader_.sequences(info.id)) {
                stop_here();
                const TokenTotals found = run.check(sequence);
                of_run += found;
                ++result_.sequences;
                result_.tokens += found.tokens;
                if (progress_) {
                    progress_({"checking", result_.tokens, all_tokens_, "tokens"});
                }
            }
            run.compare(place, info, of_run);
        });
    }

    void check_sums(const RunInfo& info, const std::string& place, const std::vector<SignalInfo>& signals) {
        for (const SignalInfo& signal : signals) {
            const std::string where = place + ", signal " + printable(signal.name, 60);
            faults_.guard(where, [&] {
                const std::optional<SignalSums> sums = signal_sums(reader_, info, signal);
                if (sums && (sums->shape.size() + 1 != signal.axes.size() ||
                             std::any_of(sums->counts.begin(), sums->counts.end(), [&](std::int64_t count) {
                                 return count < 0 || count > info.tokens;
                             }))) {
                    faults_.add(where,
                                "its sums are of other axes, or of more values than the run has tokens");
                }
            });
        }
    }

    void stop_here() const {
        if (stop_.stop_requested()) {
            throw Cancelled();
        }
    }

    FaultList& faults_;
    const TraceReader& reader_;
    Database& database_;
    TraceCheck& result_;
    const ProgressSink& progress_;
    const std::stop_token& stop_;
    std::int64_t all_tokens_ = 0;
};

/// What lies beside the trace.
void check_annotations(FaultList& faults, const TraceReader& reader, const ProgressSink& progress,
                       const std::stop_token& stop) {
    constexpr std::int64_t slice = 1 << 14; // values between two looks at the clock
    const std::optional<AnnotationReader> annotations = AnnotationReader::beside(reader.path());
    if (!annotations) {
        return;
    }
    std::map<std::string, RunInfo> runs;
    for (RunInfo& run : reader.runs()) {
        std::string name = run.name;
        runs.emplace(std::move(name), std::move(run));
    }
    std::int64_t total = 0;
    for (const AnnotationInfo& one : annotations->all()) {
        total += one.tokens;
    }
    std::int64_t done = 0;
    for (const AnnotationInfo& one : annotations->all()) {
        const std::string place = "annotation " + one.name + " of " + printable(one.run, 60);
        const auto found = runs.find(one.run);
        if (found == runs.end()) {
            faults.add(place, "there is no run of that name");
            continue;
        }
        if (!misfit_of(one, found->second).empty()) {
            faults.add(place, "it was made for another text or other tokens than the run has now");
            continue;
        }
        const std::vector<SequenceInfo> sequences = reader.sequences(found->second.id);
        std::int64_t values = 0;
        annotations->each(one, [&](std::int64_t sequence, std::int64_t position, double) {
            if (values++ % slice == 0) {
                if (stop.stop_requested()) {
                    throw Cancelled();
                }
                if (progress) {
                    progress({"checking annotations", std::min(done + values, total), total, "tokens"});
                }
            }
            if (sequence < 0 || sequence >= static_cast<std::int64_t>(sequences.size()) || position < 0 ||
                position >= sequences[static_cast<std::size_t>(sequence)].tokens) {
                faults.add(place, "it has a value at sequence " + std::to_string(sequence) + ", token " +
                                      std::to_string(position) + ", which the run has not");
            }
        });
        done += one.tokens;
    }
}

} // namespace

TraceCheck check_trace(const std::filesystem::path& path, std::size_t most_faults,
                       const ProgressSink& progress, const std::stop_token& stop) {
    check_trace_header(path);
    TraceCheck result;
    FaultList faults(path, result, most_faults);
    try {
        with_read_access([&](Database::Access access) {
            faults.clear();
            faults.guard({}, [&] {
                auto file = std::make_unique<FileTrace>(path, access);
                Database& database = file->database();
                const TraceReader reader(std::move(file));
                const std::shared_ptr<const void> snapshot = reader.pin_snapshot();
                TraceChecker(faults, reader, database, result, progress, stop).run();
                faults.guard("annotations", [&] { check_annotations(faults, reader, progress, stop); });
            });
        });
    } catch (const FaultList::Enough&) {
        result.stopped_early = true;
    } catch (const SqliteFailure& failure) {
        if (!failure.is_damage()) {
            throw_read_failure(path, failure);
        }
        result.faults.push_back({{}, std::string("the database is damaged (") + failure.what() + ")"});
    }
    return result;
}

} // namespace ponderscope
