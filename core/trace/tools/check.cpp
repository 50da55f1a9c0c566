// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/check.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/trace/digests.h"
#include "core/trace/reader.h"
#include "core/trace/recorded_choices.h"
#include "core/trace/rows.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/tools/kept_digests.h"
#include "core/trace/trace_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace ponderscope {
namespace {

/// A rule: a SELECT of the names of all places that break it, and the message for them.
struct Invariant {
    const char* broken;
    const char* message;
};
constexpr Invariant invariants[] = {
    {"SELECT 'sequence.id ' || id FROM sequence WHERE run NOT IN (SELECT id FROM run)",
     "belongs to a run that does not exist"},
    {"SELECT 'signal.id ' || id FROM signal WHERE run NOT IN (SELECT id FROM run)",
     "belongs to a run that does not exist"},
    {"SELECT 'fault.id ' || f.id FROM fault f LEFT JOIN run r ON r.id = f.run WHERE r.id IS NULL OR "
     "f.sequence < 0 OR f.sequence >= r.sequences",
     "names a run or a sequence that does not exist"},
    {"SELECT 'chunk.id ' || c.id FROM chunk c LEFT JOIN sequence s ON s.id = c.sequence LEFT JOIN signal g "
     "ON g.id = c.signal WHERE s.id IS NULL OR g.id IS NULL OR s.run <> g.run",
     "belongs to no sequence and signal of one run"},
    {"SELECT 'chunk.id ' || c.id FROM chunk c JOIN signal g ON g.id = c.signal WHERE c.dtype NOT IN "
     "(g.dtype, g.dtype || '+zstd')",
     "has a different dtype than its signal"},
    {"SELECT 'run.id ' || min(id) FROM run GROUP BY name HAVING count(*) > 1", "has the name of another run"},
    {"SELECT 'signal.id ' || min(id) FROM signal GROUP BY run, name HAVING count(*) > 1",
     "has the name of another signal of its run"},
    {"SELECT 'sequence.id ' || id FROM (SELECT id, number, row_number() OVER (PARTITION BY run ORDER BY "
     "number) - 1 AS due FROM sequence) WHERE number <> due",
     "has a number other than its place in the run"},
    {"SELECT 'sequence.id ' || id FROM (SELECT id, joined_number, lag(joined_number) OVER (PARTITION BY run "
     "ORDER BY number) AS before FROM sequence WHERE joined_number IS NOT NULL) WHERE joined_number <= "
     "before",
     "has a joined_number that is not above the joined_number of the previous sequence"},
    {"SELECT 'run.id ' || r.id FROM run r WHERE r.sequences <> (SELECT count(*) FROM sequence s WHERE s.run "
     "= r.id)",
     "has a count of sequences that differs from its sequences"},
    {"SELECT 'run.id ' || r.id FROM run r WHERE r.tokenizer_digest <> '' AND r.tokens > 0 AND NOT EXISTS "
     "(SELECT 1 FROM vocabulary v WHERE v.tokenizer = r.tokenizer)",
     "has a tokenizer_digest, and vocabulary has no row of its tokenizer"},
    {"SELECT 'text.row ' || t.row FROM text t JOIN sequence s ON s.id = t.row >> 32 WHERE length(t.bytes) <> "
     "min(4000, s.text_bytes - 4000 * (t.row & 4294967295)) OR length(t.bytes) = 0",
     "has a length that is wrong for its place"},
    // Jumps from sequence to sequence, because the rows of a sequence are a range of ids.
    {"WITH RECURSIVE found(id) AS (SELECT min(row) >> 32 FROM token_row UNION ALL SELECT (SELECT min(row) >> "
     "32 FROM token_row WHERE row >= (found.id + 1) << 32) FROM found WHERE found.id < 2147483647) SELECT "
     "'token_row has "
     "rows of sequence.id ' || id || ',' FROM found WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM "
     "sequence)",
     "which does not exist"},
    {"WITH RECURSIVE found(id) AS (SELECT min(row) >> 32 FROM text UNION ALL SELECT (SELECT min(row) >> 32 "
     "FROM text WHERE row >= (found.id + 1) << 32) FROM found WHERE found.id < 2147483647) SELECT 'text has "
     "rows of "
     "sequence.id ' || id || ',' FROM found WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM sequence)",
     "which does not exist"},
    {"SELECT DISTINCT 'a label of sequence.id ' || sequence FROM label WHERE sequence NOT IN (SELECT id FROM "
     "sequence)",
     "belongs to no sequence"},
    {"SELECT 'a label of sequence.id ' || l.sequence FROM (SELECT *, lag(text_end) OVER (PARTITION BY "
     "sequence ORDER BY text_begin) AS before FROM label) l JOIN sequence s ON s.id = l.sequence WHERE "
     "l.text_begin < coalesce(l.before, 0) OR l.text_end <= l.text_begin OR l.text_end > s.text_bytes",
     "is empty, overlaps another label or extends beyond the text"},
    {"SELECT 'training.id ' || min(id) FROM training GROUP BY name HAVING count(*) > 1",
     "has the name of another training"},
    {"SELECT DISTINCT 'a quantity of training.id ' || training FROM training_quantity WHERE training NOT IN "
     "(SELECT id FROM training)",
     "belongs to no training"},
    {"SELECT DISTINCT 'points of ' || p.quantity || ' of training.id ' || p.training FROM training_point p "
     "LEFT JOIN training_quantity q ON q.training = p.training AND q.name = p.quantity WHERE q.name IS NULL",
     "have a quantity that training_quantity lacks"},
    {"SELECT DISTINCT 'points of training.id ' || training FROM training_point WHERE step < 0 OR place < 0 "
     "OR "
     "tokens < 0 OR seconds < 0",
     "have a step, place, tokens or seconds below 0"},
    {"SELECT 'training.id ' || t.id FROM training t WHERE t.step <> coalesce((SELECT max(p.step) FROM "
     "training_point p WHERE p.training = t.id), t.step)",
     "has a step other than the step of its last point"},
};

/// Tolerance for the rounding of probabilities and their logarithms in fp16 or fp32.
constexpr double slack = 2e-2;
constexpr std::int64_t page_tokens = 1 << 14;
constexpr std::size_t page_bytes = std::size_t{4} << 20; // largest part of a signal read at once

/// Collects the faults of a trace, up to a largest number.
class FaultList {
public:
    FaultList(std::filesystem::path path, TraceCheck& result, std::size_t most)
        : path_(std::move(path)), result_(result), most_(most) {}

    /// Thrown when there are enough faults.
    struct Enough {};
    void add(const std::string& place, const std::string& message) {
        if (result_.faults.size() >= most_) {
            throw Enough();
        }
        result_.faults.push_back({place, message});
    }
    void clear() { result_ = {}; }
    /// Runs \p body and adds a fault if it throws InputError.
    template <class Body>
    void guard(const std::string& place, const Body& body) {
        try {
            body();
        } catch (const InputError& error) {
            add(place, without_path(error.what()));
        }
    }

private:
    /// The message of an InputError without the path in front and without the remedy.
    [[nodiscard]] std::string without_path(std::string message) const {
        for (const std::string& path : {path_.string(), path_.string() + ".annotations"}) {
            if (const std::string prefix = path + ": "; message.starts_with(prefix)) {
                message.erase(0, prefix.size());
            }
        }
        return message.substr(0, message.find("; "));
    }
    std::filesystem::path path_;
    TraceCheck& result_;
    std::size_t most_;
};

std::string with_column(std::string sql, const std::string& column) {
    for (std::size_t at = sql.find('?'); at != std::string::npos; at = sql.find('?', at + column.size())) {
        sql.replace(at, 1, column);
    }
    return sql;
}

/// Checks a whole trace and adds faults to a FaultList.
class TraceChecker {
public:
    TraceChecker(FaultList& faults, const FileTrace& file, TraceCheck& result, const ProgressSink& progress,
                 const std::stop_token& stop)
        : faults_(faults),
          file_(file),
          database_(file.database()),
          result_(result),
          progress_(progress),
          stop_(stop) {}

    void run() {
        if (const std::string pages = database_.text("PRAGMA quick_check(1)"); pages != "ok") {
            faults_.add({}, "the database is damaged (" + printable(pages, 200) + ")");
        }
        check_structure();
        check_rules<RunInfo>("run");
        check_rules<SequenceInfo>("sequence");
        check_rules<SignalInfo>("signal");
        for (const Invariant& invariant : invariants) {
            Statement rows = database_.prepare(invariant.broken);
            while (rows.step()) {
                faults_.add({}, printable(rows.text(0), 100) + " " + invariant.message);
            }
        }
        faults_.guard({}, [&] {
            const std::vector<RunInfo> runs = file_.unchecked_runs();
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
                faults_.add({}, "table " + table.name + " is not STRICT, so values may have other types");
            }
        }
        for (const std::string& view : schema::views()) {
            Statement entry = database_.prepare("SELECT type FROM sqlite_schema WHERE name = ?");
            entry.bind(1, std::string_view(view));
            if (!entry.step()) {
                faults_.add({}, "there is no view " + view);
            } else if (entry.text(0) != "view") {
                faults_.add({}, view + " is a " + entry.text(0) + ", not a view");
            }
        }
    }

    /// Checks the rules that concern a single column.
    template <class Row>
    void check_rules(const std::string& table) {
        for (const schema::Field<Row>& field : schema::fields<Row>()) {
            if (field.rule == nullptr) {
                continue;
            }
            Statement rows =
                database_.prepare("SELECT id, " + std::string(field.name) + " FROM " + table +
                                  " WHERE NOT (" + with_column(field.rule->sql, field.name) + ")");
            while (rows.step()) {
                faults_.add(table + " " + printable(rows.text(0), 20), std::string(field.name) + " is \"" +
                                                                           printable(rows.text(1), 70) +
                                                                           "\", not " + field.rule->words);
            }
        }
    }

    void check_run(const RunInfo& run) {
        const std::string place = "run " + std::to_string(run.id) + " (" + printable(run.name, 60) + ")";
        ++result_.runs;
        faults_.guard(place, [&] { file_.check_run(run); });
        each_digest(database_, run.id, [&](const DigestedPart& part) {
            throw_if_stopped(stop_);
            result_.chunks += part.is_chunk ? 1 : 0;
            result_.without_digest += part.due ? 0 : 1;
            if (part.due && *part.due != part.found) {
                faults_.add(place, part.name + " differs from the recording: its CRC-32 is " +
                                       std::to_string(part.found) + ", not " + std::to_string(*part.due));
            }
        });
        faults_.guard(place, [&] {
            const std::vector<SignalInfo> signals = file_.signal_infos(run.id);
            TokenTotals of_run;
            for (const SequenceInfo& sequence : file_.sequences(run.id)) {
                throw_if_stopped(stop_);
                const std::string where = place + ", sequence " + std::to_string(sequence.number);
                const TokenTotals found = check_sequence(run, sequence, where, signals);
                of_run += found;
                ++result_.sequences;
                result_.tokens += found.tokens;
                report_progress(progress_, {"checking", result_.tokens, all_tokens_, "tokens"});
            }
            compare(place, run, of_run);
        });
    }

    /// \p told: the stored totals. \p found: the computed totals.
    void compare(const std::string& place, const TokenTotals& told, const TokenTotals& found) {
        const auto each = [&](const char* name, auto TokenTotals::*member) {
            const auto a = static_cast<double>(told.*member);
            const auto b = static_cast<double>(found.*member);
            if (!(std::abs(a - b) <= 1e-6 + 1e-6 * std::max(std::abs(a), std::abs(b)))) {
                faults_.add(place, std::string(name) + " is " + nlohmann::json(a).dump() +
                                       " and its tokens give " + nlohmann::json(b).dump());
            }
        };
        each("tokens", &TokenTotals::tokens);
        each("scored_tokens", &TokenTotals::scored_tokens);
        each("scored_bytes", &TokenTotals::scored_bytes);
        each("nll_sum", &TokenTotals::nll_sum);
        each("steps_sum", &TokenTotals::steps_sum);
        each("flops_sum", &TokenTotals::flops_sum);
    }

    /// Checks a sequence and returns the totals of its tokens.
    TokenTotals check_sequence(const RunInfo& run, const SequenceInfo& sequence, const std::string& place,
                               const std::vector<SignalInfo>& signals) {
        faults_.guard(place, [&] { (void)file_.text(run.id, sequence.number); });
        // With kv = full every step runs, and an exit only chooses the read-out.
        const bool all_ran = recorded_choices(run.choices).kv == "full";
        TotalsCounter totals;
        std::vector<std::int64_t> last_steps;
        SequenceSoFar so_far;
        faults_.guard(place, [&] {
            for (std::int64_t begin = 0; begin < sequence.tokens; begin += page_tokens) {
                const TokenColumns tokens = file_.tokens(run.id, sequence.number, begin,
                                                         std::min(begin + page_tokens, sequence.tokens));
                totals.add(tokens);
                check_tokens(run, sequence, place, tokens, so_far);
                for (const std::int32_t step : tokens.steps) {
                    last_steps.push_back(all_ran ? run.max_steps
                                                 : std::min<std::int64_t>(step, run.max_steps));
                }
            }
        });
        if (so_far.unranked >= 0 && so_far.ranked) { // without any rank, ranks are unknown
            faults_.add(place + ", token " + std::to_string(so_far.unranked), "it has an nll but no rank");
        }
        compare(place, sequence, totals.totals());
        for (const SignalInfo& signal : signals) {
            const std::string where = place + ", signal " + printable(signal.name, 60);
            faults_.guard(where, [&] { check_signal(run, sequence, where, signal, last_steps); });
        }
        return totals.totals();
    }

    struct SequenceSoFar {
        std::uint64_t covered = 0;  ///< bytes before this are covered by tokens
        bool ranked = false;        ///< a token has a rank
        std::int64_t unranked = -1; ///< first scored token without a rank
    };

    void check_tokens(const RunInfo& run, const SequenceInfo& sequence, const std::string& place,
                      const TokenColumns& tokens, SequenceSoFar& so_far) {
        const double most_entropy =
            std::log(static_cast<double>(std::max<std::int64_t>(run.vocab_size, 1))) + slack;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            const std::int64_t position = tokens.first + static_cast<std::int64_t>(i);
            const auto nll = static_cast<double>(tokens.nll[i]);
            const auto entropy = static_cast<double>(tokens.entropy[i]);
            const auto probability = static_cast<double>(tokens.max_probability[i]);
            const bool scored = !std::isnan(nll);
            const bool is_last = sequence.complete && position + 1 == sequence.tokens;
            const std::pair<bool, const char*> promises[] = {
                {tokens.id[i] >= 0 && tokens.id[i] < run.vocab_size, "its id is not below vocab_size"},
                {tokens.begin[i] == tokens.end[i] || tokens.begin[i] >= so_far.covered,
                 "it begins before the end of the tokens before it"},
                {!scored || nll >= -slack, "its nll is below 0"},
                {!scored || !is_last, "it is the last of its sequence and has an nll"},
                {scored || tokens.rank[i] == 0, "it has a rank and no nll"},
                {tokens.rank[i] <= run.vocab_size, "its rank is above vocab_size"},
                {std::isnan(entropy) || (entropy >= -slack && entropy <= most_entropy),
                 "its entropy is not between 0 and ln vocab_size"},
                {std::isnan(probability) || (probability > 0 && probability <= 1 + slack),
                 "its max_probability is not between 0 and 1"},
                {tokens.steps[i] <= run.max_steps, "its steps are above the run's max_steps"},
                {tokens.flops[i] >= 0, "its flops are below 0"},
            };
            for (const auto& [kept, broken] : promises) {
                if (!kept) {
                    faults_.add(place + ", token " + std::to_string(position), broken);
                }
            }
            so_far.covered = std::max(so_far.covered, tokens.end[i]);
            so_far.ranked = so_far.ranked || (scored && tokens.rank[i] > 0);
            if (so_far.unranked < 0 && scored && tokens.rank[i] == 0) {
                so_far.unranked = position;
            }
        }
    }

    void check_signal(const RunInfo& run, const SequenceInfo& sequence, const std::string& place,
                      const SignalInfo& signal, const std::vector<std::int64_t>& last_steps) {
        const auto read = [&](std::int64_t begin, std::int64_t end) {
            return file_.signal(run.id, sequence.number, signal.name, begin, std::min(end, sequence.tokens));
        };
        // If a signal is trimmed, the last token has the longest last axis.
        const auto probe = sequence.tokens > 0 ? read(sequence.tokens - 1, sequence.tokens) : std::nullopt;
        if (sequence.tokens == 0 || (!probe && !read(0, 1))) {
            return; // the sequence has no values of the signal
        }
        const std::size_t bytes = probe ? std::max<std::size_t>(probe->data.size(), 1) : page_bytes;
        const std::int64_t page =
            std::clamp<std::int64_t>(static_cast<std::int64_t>(page_bytes / bytes), 1, page_tokens);
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += page) {
            throw_if_stopped(stop_);
            const auto chunk = read(begin, begin + page);
            if (!chunk) {
                faults_.add(place,
                            "its values are of other tokens, with none from token " + std::to_string(begin));
                return;
            }
            check_values(place, run, signal, *chunk, last_steps);
        }
    }

    /// Checks that steps that ran have a value, and that other steps have none.
    void check_values(const std::string& place, const RunInfo& run, const SignalInfo& signal,
                      const SignalChunk& chunk, const std::vector<std::int64_t>& last_steps) {
        if (signal.axes.size() < 2 || signal.axes[1] != "step") {
            return;
        }
        const bool real = is_real(chunk.dtype);
        const std::int64_t steps = chunk.shape[1];
        if (steps > run.max_steps + 1) {
            faults_.add(place, "its axis step has " + std::to_string(steps) +
                                   " places and the run's max_steps is " + std::to_string(run.max_steps));
            return;
        }
        const std::vector<double> values = to_doubles(chunk);
        const auto of_step = static_cast<std::int64_t>(values.size()) / (chunk.shape[0] * steps);
        // In a trimmed signal only the first entry of the last axis shows whether the step ran.
        const std::int64_t stride = signal.storage == SignalStorage::trimmed ? chunk.shape.back() : 1;
        bool empty_behind = false;
        std::int64_t number_behind = -1; // first token with a value after its last step
        for (std::int64_t t = 0; t < chunk.shape[0]; ++t) {
            const auto token = static_cast<std::size_t>(chunk.first + t);
            const std::int64_t last = token < last_steps.size() ? last_steps[token] : run.max_steps;
            for (std::int64_t k = 0; k < steps; ++k) {
                for (std::int64_t i = 0; i < of_step; i += stride) {
                    const double value = values[static_cast<std::size_t>((t * steps + k) * of_step + i)];
                    const bool is_there = real ? !std::isnan(value) : value != did_not_run;
                    if (k <= last && !real && !is_there) {
                        faults_.add(place, "token " + std::to_string(token) + " ran step " +
                                               std::to_string(k) + ", but its value says that it did not");
                        return;
                    }
                    if (k > last && is_there && number_behind < 0) {
                        number_behind = static_cast<std::int64_t>(token);
                    }
                    empty_behind = empty_behind || (k > last && !is_there);
                }
            }
        }
        if (number_behind >= 0 && (empty_behind || !signal.every_step)) {
            faults_.add(place, "token " + std::to_string(number_behind) +
                                   " has a value after its last step; expected " + (real ? "NaN" : "-1"));
        }
    }

    FaultList& faults_;
    const FileTrace& file_;
    Database& database_;
    TraceCheck& result_;
    const ProgressSink& progress_;
    const std::stop_token& stop_;
    std::int64_t all_tokens_ = 0;
};

/// Checks the annotations beside the trace.
void check_annotations(FaultList& faults, const FileTrace& trace, const ProgressSink& progress,
                       const std::stop_token& stop) {
    constexpr std::int64_t slice = 1 << 14; // values between two reports of progress
    const std::optional<AnnotationReader> annotations = AnnotationReader::beside(trace.path());
    if (!annotations) {
        return;
    }
    std::map<std::string, RunInfo> runs;
    for (const RunInfo& run : trace.unchecked_runs()) {
        runs.emplace(run.name, run);
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
            faults.add(place, "no run has this name");
            continue;
        }
        if (!misfit_of(one, found->second).empty()) {
            faults.add(place, "it belongs to another text or other tokens than the run");
            continue;
        }
        const std::vector<SequenceInfo> sequences = trace.sequences(found->second.id);
        std::int64_t values = 0;
        annotations->each(one, [&](std::int64_t sequence, std::int64_t position, double) {
            if (values++ % slice == 0) {
                throw_if_stopped(stop);
                report_progress(progress,
                                {"checking annotations", std::min(done + values, total), total, "tokens"});
            }
            if (sequence < 0 || sequence >= static_cast<std::int64_t>(sequences.size()) || position < 0 ||
                position >= sequences[static_cast<std::size_t>(sequence)].tokens) {
                faults.add(place, "it has a value at sequence " + std::to_string(sequence) + ", token " +
                                      std::to_string(position) + ", which the run lacks");
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
                const FileTrace file(path, access);
                const std::shared_ptr<const void> snapshot = file.pin_snapshot();
                TraceChecker(faults, file, result, progress, stop).run();
                faults.guard("annotations", [&] { check_annotations(faults, file, progress, stop); });
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
