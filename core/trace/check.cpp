// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/check.h"
#include "core/trace/recorded_choices.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/trace/annotations.h"
#include "core/trace/check_impl.h"
#include "core/trace/digests.h"
#include "core/trace/reader.h"
#include "core/trace/schema.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace ponderscope {
namespace {

bool is_digest(const std::string& text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// "2026-11-21T11:45:00Z", perhaps with fractions of a second.
bool is_time(const std::string& text) {
    const std::string pattern = "dddd-dd-ddTdd:dd:dd";
    if (text.size() < pattern.size() + 1 || text.back() != 'Z') {
        return false;
    }
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (pattern[i] == 'd' ? !digit : text[i] != pattern[i]) {
            return false;
        }
    }
    const std::string rest = text.substr(pattern.size(), text.size() - pattern.size() - 1);
    return rest.empty() || (rest.front() == '.' && rest.size() > 1 &&
                            rest.find_first_not_of("0123456789", 1) == std::string::npos);
}

std::optional<nlohmann::json> parsed(const std::string& text) {
    nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
    return value.is_discarded() ? std::nullopt : std::optional(std::move(value));
}

bool close(double a, double b) {
    return std::abs(a - b) <= 1e-6 + 1e-6 * std::max(std::abs(a), std::abs(b));
}

} // namespace

void TraceChecker::Totals::add(const Totals& other) {
    tokens += other.tokens;
    scored_tokens += other.scored_tokens;
    scored_bytes += other.scored_bytes;
    nll_sum += other.nll_sum;
    steps_sum += other.steps_sum;
    flops_sum += other.flops_sum;
}

void TraceChecker::fault(const std::string& place, const std::string& message) {
    if (result_.faults.size() >= most_) {
        result_.stopped_early = true;
        throw Enough();
    }
    result_.faults.push_back({place, message});
}

/// The first column of each row goes in front of the message.
void TraceChecker::fault_of_rows(const std::string& query, const std::string& message) {
    Statement rows = database_.prepare(query);
    while (rows.step()) {
        fault({}, printable(rows.text(0), 100) + " " + message);
    }
}

void TraceChecker::check_structure() {
    for (const schema::Table& table : schema::tables()) {
        Statement entry =
            database_.prepare("SELECT strict FROM pragma_table_list WHERE schema = 'main' AND name = ?");
        entry.bind(1, std::string_view(table.name));
        if (entry.step() && entry.integer(0) != 1) {
            fault({}, std::string("table ") + table.name + " is not STRICT, so that types are not kept");
        }
    }
    for (const schema::View& view : schema::views()) {
        Statement entry = database_.prepare("SELECT type FROM sqlite_schema WHERE name = ?");
        entry.bind(1, std::string_view(view.name));
        if (!entry.step()) {
            fault({}, std::string("there is no view ") + view.name);
        } else if (entry.text(0) != "view") {
            fault({}, std::string(view.name) + " is a " + entry.text(0) + " and no view");
        }
    }
}

/// Rows that belong to nothing.
void TraceChecker::check_references() {
    fault_of_rows("SELECT 'sequence.id ' || id FROM sequence WHERE run NOT IN (SELECT id FROM run)",
                  "belongs to a run that is not there");
    fault_of_rows("SELECT 'signal.id ' || id FROM signal WHERE run NOT IN (SELECT id FROM run)",
                  "belongs to a run that is not there");
    fault_of_rows(
        "SELECT 'fault.id ' || f.id FROM fault f LEFT JOIN run r ON r.id = f.run WHERE r.id IS NULL "
        "OR f.sequence < 0 OR f.sequence >= r.sequences",
        "names a run or a sequence that is not there");
    fault_of_rows(
        "SELECT 'chunk.id ' || c.id FROM chunk c LEFT JOIN sequence s ON s.id = c.sequence "
        "LEFT JOIN signal g ON g.id = c.signal WHERE s.id IS NULL OR g.id IS NULL OR s.run <> g.run",
        "belongs to no sequence and signal of one run");
    for (const char* table : {"token_row", "text"}) {
        // Step by step from sequence to sequence: the rows of each are a range.
        const std::string next =
            std::string("SELECT row >> 32 FROM ") + table + " WHERE row >= ?1 << 32 ORDER BY row LIMIT 1";
        Statement find = database_.prepare(next);
        Statement known = database_.prepare("SELECT 1 FROM sequence WHERE id = ?");
        for (std::int64_t id = 0;;) {
            find.bind(1, id);
            const bool any = find.step();
            const std::int64_t found = any ? find.integer(0) : 0;
            find.reset();
            if (!any) {
                break;
            }
            known.bind(1, found);
            if (!known.step()) {
                fault({}, std::string(table) + " has rows of sequence.id " + std::to_string(found) +
                              ", which is not there");
            }
            known.reset();
            if (found >= schema::max_sequence_id) {
                break;
            }
            id = found + 1;
        }
        if (database_.integer(std::string("SELECT count(*) FROM (SELECT 1 FROM ") + table +
                              " WHERE row < 0 LIMIT 1)") != 0) {
            fault({}, std::string(table) + " has rows below 0");
        }
    }
    fault_of_rows("SELECT 'run.id ' || min(id) FROM run GROUP BY name HAVING count(*) > 1",
                  "has a name that another run has too");
    fault_of_rows("SELECT 'sequence.id ' || min(id) FROM sequence GROUP BY run, number HAVING count(*) > 1",
                  "has a number that another sequence of its run has too");
    fault_of_rows("SELECT 'signal.id ' || min(id) FROM signal GROUP BY run, name HAVING count(*) > 1",
                  "has a name that another signal of its run has too");
    fault_of_rows("SELECT DISTINCT 'a label of sequence.id ' || sequence FROM label WHERE sequence NOT IN "
                  "(SELECT id FROM sequence)",
                  "belongs to no sequence");
    check_trainings();
}

void TraceChecker::check_trainings() {
    fault_of_rows("SELECT 'training.id ' || min(id) FROM training GROUP BY name HAVING count(*) > 1",
                  "has a name that another training has too");
    fault_of_rows(
        "SELECT DISTINCT 'a quantity of training.id ' || training FROM training_quantity WHERE training "
        "NOT IN (SELECT id FROM training)",
        "belongs to no training");
    fault_of_rows("SELECT DISTINCT 'points of ' || p.quantity || ' of training.id ' || p.training FROM "
                  "training_point p LEFT JOIN training_quantity q ON q.training = p.training AND "
                  "q.name = p.quantity WHERE q.name IS NULL",
                  "are of a quantity that training_quantity has not");
    fault_of_rows(
        "SELECT DISTINCT 'points of training.id ' || training FROM training_point WHERE step < 0 OR "
        "place < 0 OR tokens < 0 OR seconds < 0",
        "have a step, place, tokens or seconds below 0");
    fault_of_rows(
        "SELECT 'training.id ' || t.id FROM training t WHERE t.step <> coalesce((SELECT max(p.step) "
        "FROM training_point p WHERE p.training = t.id), t.step)",
        "has another step than its last point");
    fault_of_rows("SELECT 'run.id ' || id FROM run WHERE training <> 0 AND training NOT IN (SELECT id FROM "
                  "training)",
                  "names a training that is not there");
}

void TraceChecker::check_run_texts(const std::string& place, std::int64_t id) {
    Statement row = database_.prepare("SELECT name, started, text_digest, checkpoint_digest, "
                                      "tokenizer_digest, versions, notices, config, flops_model, "
                                      "step_unit FROM run WHERE id = ?");
    row.bind(1, id);
    if (!row.step()) {
        return;
    }
    if (row.text(0).empty()) {
        fault(place, "its name is empty");
    }
    if (!is_time(row.text(1))) {
        fault(place,
              "started is \"" + printable(row.text(1), 40) + "\" and no time like 2026-11-21T11:45:00Z");
    }
    const char* const digests[] = {"text_digest", "checkpoint_digest", "tokenizer_digest"};
    for (int i = 0; i < 3; ++i) {
        const std::string digest = row.text(2 + i);
        if (!digest.empty() && !is_digest(digest)) {
            fault(place, std::string(digests[i]) + " is \"" + printable(digest, 70) +
                             "\" and no SHA-256 in 64 hexadecimal digits");
        }
    }
    const auto versions = parsed(row.text(5));
    if (!versions || !versions->is_object()) {
        fault(place, "versions is no JSON object");
    }
    const auto notices = parsed(row.text(6));
    if (!notices || !notices->is_array() ||
        !std::all_of(notices->begin(), notices->end(), [](const auto& one) { return one.is_string(); })) {
        fault(place, "notices is no JSON array of sentences");
    }
    if (const std::string config = row.text(7); !config.empty()) {
        const auto document = parsed(config);
        if (!document || !document->is_object()) {
            fault(place, "config is neither empty nor a JSON object");
        }
    }
    if (const std::string model = row.text(8); !model.empty()) {
        const auto document = parsed(model);
        if (!document || !document->is_object()) {
            fault(place, "flops_model is neither empty nor a JSON object");
        }
    }
    if (const std::string unit = row.text(9); unit != "step" && unit != "layer") {
        fault(place, "step_unit is \"" + printable(unit, 40) + "\" and neither step nor layer");
    }
}

std::optional<std::int64_t> TraceChecker::digest_in(const Statement& row, int column) {
    return row.is_null(column) ? std::nullopt : std::optional(row.integer(column));
}

void TraceChecker::check_digest(const std::string& place, const char* what, std::optional<std::int64_t> due,
                                std::uint32_t found) {
    if (!due) {
        ++result_.without_digest;
    } else if (*due != found) {
        fault(place, std::string(what) + " not what was recorded: the CRC-32 is " + std::to_string(found) +
                         " where " + std::to_string(*due) + " is due");
    }
}

void TraceChecker::compare(const std::string& place, const Totals& told, const Totals& found) {
    const auto differ = [&](const char* name, const std::string& in_row, const std::string& in_tokens) {
        fault(place, std::string(name) + " is " + in_row + " and its tokens give " + in_tokens);
    };
    const auto whole = [&](const char* name, std::int64_t a, std::int64_t b) {
        if (a != b) {
            differ(name, std::to_string(a), std::to_string(b));
        }
    };
    const auto real = [&](const char* name, double a, double b) {
        if (!close(a, b)) {
            differ(name, shown(a), shown(b));
        }
    };
    whole("tokens", told.tokens, found.tokens);
    whole("scored_tokens", told.scored_tokens, found.scored_tokens);
    whole("scored_bytes", told.scored_bytes, found.scored_bytes);
    real("nll_sum", told.nll_sum, found.nll_sum);
    real("steps_sum", told.steps_sum, found.steps_sum);
    real("flops_sum", told.flops_sum, found.flops_sum);
}

void TraceChecker::check_sequence(const Run& run, const Sequence& sequence, const Totals& told,
                                  const std::vector<Signal>& signals, Totals& of_run) {
    if (stop_.stop_requested()) {
        throw Cancelled();
    }
    const std::string text = check_text(run, sequence);
    std::vector<std::int32_t> steps;
    const Totals found = check_tokens(run, sequence, text, steps);
    compare(sequence.place, told, found);
    of_run.add(found);
    check_labels(sequence);
    for (const Signal& signal : signals) {
        check_chunks(run, sequence, signal, steps);
    }
    ++result_.sequences;
    result_.tokens += found.tokens;
    if (progress_) {
        progress_({"checking", result_.tokens, all_tokens_, "tokens"});
    }
}

void TraceChecker::check_run(std::int64_t id) {
    Statement row = database_.prepare(
        "SELECT name, tokenizer, vocab_size, max_steps, complete, sequences, tokens, scored_tokens, nll_sum, "
        "steps_sum, "
        "flops_sum, scored_bytes, seconds, layers, context, stride, tokenizer_digest, choices, record_level "
        "FROM run WHERE id = ?");
    row.bind(1, id);
    if (!row.step()) {
        return;
    }
    Run run{id, "run " + std::to_string(id) + " (" + printable(row.text(0), 60) + ")", row.integer(1),
            row.integer(2), row.integer(3)};
    check_run_texts(run.place, id);
    run.all_ran = recorded_choices(row.text(17)).kv == "full";
    run.packed = row.text(18) == "scalars";
    if (run.vocab_size < 1 || run.max_steps < 0 || row.integer(13) < 0 || row.integer(14) < 0 ||
        row.integer(15) < 0 || !(row.real(12) >= 0)) {
        fault(run.place, "vocab_size, max_steps, layers, context, stride or seconds is below what it can be");
    }
    if (row.integer(4) != 0 && row.integer(4) != 1) {
        fault(run.place, "complete is " + std::to_string(row.integer(4)) + " and neither 0 nor 1");
    }
    words_.clear();
    missing_words_.clear();
    Statement words = database_.prepare("SELECT id, bytes, crc32 FROM vocabulary WHERE tokenizer = ?");
    words.bind(1, run.tokenizer);
    while (words.step()) {
        if (const auto due = digest_in(words, 2); due && *due != crc32_of(words.blob(1))) {
            fault(run.place, "the bytes of token id " + std::to_string(words.integer(0)) +
                                 " in vocabulary are not those that were recorded (CRC-32)");
        }
        words_.insert(words.integer(0));
        run.largest_word = std::max(run.largest_word, words.integer(0));
    }
    if (words_.empty() && !row.text(16).empty() && row.integer(6) > 0) {
        fault(run.place, "it has a tokenizer_digest, and vocabulary has no row of its tokenizer");
    }
    const std::vector<Signal> signals = check_signal_table(run);
    Totals found;
    Statement sequences = database_.prepare("SELECT id, number, title, text_bytes, tokens, scored_tokens, "
                                            "nll_sum, steps_sum, flops_sum, scored_bytes, "
                                            "complete, text_crc32, tokens_crc32, joined_number FROM sequence "
                                            "WHERE run = ? ORDER BY number");
    sequences.bind(1, id);
    std::int64_t count = 0;
    std::int64_t joined = -1; // the largest joined_number so far
    for (; sequences.step(); ++count) {
        Sequence sequence{
            sequences.integer(0),       run.place + ", sequence " + std::to_string(sequences.integer(1)),
            sequences.integer(4),       sequences.integer(3),
            sequences.integer(10) == 1, digest_in(sequences, 11),
            digest_in(sequences, 12)};
        if (sequences.integer(1) != count) {
            fault(sequence.place, "number " + std::to_string(count) + " is due in its place");
        }
        if (sequence.id < 1 || sequence.id > schema::max_sequence_id || sequence.tokens < 0 ||
            sequence.text_bytes < 0) {
            fault(sequence.place, "its id, tokens or text_bytes is out of range");
            continue;
        }
        if (!sequences.is_null(13) && sequences.integer(13) <= joined) {
            fault(sequence.place, "joined_number is " + std::to_string(sequences.integer(13)) +
                                      ", not above that of the sequence before it");
        }
        joined = sequences.is_null(13) ? joined : sequences.integer(13);
        const Totals told{sequences.integer(4), sequences.integer(5), sequences.integer(9),
                          sequences.real(6),    sequences.real(7),    sequences.real(8)};
        check_sequence(run, sequence, told, signals, found);
    }
    if (row.integer(5) != count) {
        fault(run.place,
              "sequences is " + std::to_string(row.integer(5)) + " and there are " + std::to_string(count));
    }
    compare(run.place,
            {row.integer(6), row.integer(7), row.integer(11), row.real(8), row.real(9), row.real(10)}, found);
    ++result_.runs;
}

void TraceChecker::run() {
    const std::string pages = database_.text("PRAGMA quick_check(1)");
    if (pages != "ok") {
        fault({}, "the database is damaged (" + printable(pages, 200) + ")");
    }
    check_structure();
    check_references();
    all_tokens_ = database_.integer("SELECT sum(tokens) FROM run");
    std::vector<std::int64_t> runs;
    {
        Statement rows = database_.prepare("SELECT id FROM run ORDER BY id");
        while (rows.step()) {
            runs.push_back(rows.integer(0));
        }
    }
    for (const std::int64_t id : runs) {
        check_run(id);
    }
}

namespace {

/// A sentence of InputError without the path in front and what to do.
std::string core_of(const InputError& error, const std::filesystem::path& path) {
    std::string message = error.what();
    if (const std::string prefix = path.string() + ": "; message.starts_with(prefix)) {
        message.erase(0, prefix.size());
    }
    return message.substr(0, message.find("; "));
}

/// Runs by name, with the lengths of their sequences. Nothing where they cannot be read, which is a fault of
/// the trace and none of what lies beside it.
using Lengths = std::map<std::int64_t, std::int64_t>;
using RunLengths = std::map<std::string, std::pair<RunInfo, Lengths>>;
std::optional<RunLengths> runs_of(const std::filesystem::path& path, TraceCheck& result) {
    RunLengths runs;
    try {
        const TraceReader reader = TraceReader::open(path);
        for (RunInfo& run : reader.runs()) {
            Lengths lengths;
            for (const SequenceInfo& sequence : reader.sequences(run.id)) {
                lengths[sequence.index] = sequence.tokens;
            }
            std::string name = run.name;
            runs.emplace(std::move(name), std::pair(std::move(run), std::move(lengths)));
        }
    } catch (const InputError& error) {
        if (result.faults.empty()) { // else it was said
            result.faults.push_back({{}, core_of(error, path)});
        }
        return std::nullopt;
    }
    return runs;
}

/// What lies beside the trace. A file that is none of annotations is one fault.
void check_annotations(const std::filesystem::path& path, TraceCheck& result, std::size_t most,
                       const ProgressSink& progress, const std::stop_token& stop) {
    constexpr std::int64_t slice = 1 << 14; // values between two looks at the clock
    const auto fault = [&](const std::string& place, const std::string& message) {
        if (result.faults.size() >= most) {
            result.stopped_early = true;
            throw TraceChecker::Enough();
        }
        result.faults.push_back({place, message});
    };
    try {
        const std::optional<AnnotationReader> annotations = AnnotationReader::beside(path);
        if (!annotations) {
            return;
        }
        const auto runs = runs_of(path, result);
        std::int64_t total = 0;
        for (const AnnotationInfo& one : annotations->all()) {
            total += one.tokens;
        }
        std::int64_t done = 0;
        for (const AnnotationInfo& one : runs ? annotations->all() : std::vector<AnnotationInfo>()) {
            const std::string place = "annotation " + one.name + " of " + printable(one.run, 60);
            const auto found = runs->find(one.run);
            if (found == runs->end()) {
                fault(place, "there is no run of that name");
                continue;
            }
            const auto& lengths = found->second.second;
            if (!misfit_of(one, found->second.first).empty()) {
                fault(place, "it was made for another text or other tokens than the run has now");
                continue;
            }
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
                const auto length = lengths.find(sequence);
                if (length == lengths.end() || position < 0 || position >= length->second) {
                    fault(place, "it has a value at sequence " + std::to_string(sequence) + ", token " +
                                     std::to_string(position) + ", which the run has not");
                }
            });
            done += one.tokens;
        }
    } catch (const TraceChecker::Enough&) {
        // What was found stands in the result.
    } catch (const InputError& error) {
        result.faults.push_back({"annotations", core_of(error, annotations_path(path))});
    }
}

} // namespace

TraceCheck check_trace(const std::filesystem::path& path, std::size_t most_faults,
                       const ProgressSink& progress, const std::stop_token& stop) {
    check_trace_header(path);
    TraceCheck result;
    const auto attempt = [&](Database::Access access) {
        Database database(path, access);
        database.execute(
            "PRAGMA query_only=ON; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-16384");
        const ReadTransaction transaction(database);
        try {
            check_trace_tables(database, path);
            TraceChecker(database, result, most_faults, progress, stop).run();
        } catch (const TraceChecker::Enough&) {
            // What was found stands in the result.
        }
    };
    try {
        try {
            attempt(Database::Access::read);
        } catch (const SqliteFailure& failure) {
            // A trace in WAL mode wants a helper file beside it; where none can be made, nobody writes
            // either.
            if (!failure.lacks_helper_files()) {
                throw;
            }
            result = {};
            attempt(Database::Access::read_immutable);
        }
    } catch (const InputError& missing) { // a table or a column
        result.faults.push_back({{}, core_of(missing, path)});
    } catch (const SqliteFailure& failure) {
        if (!failure.is_damage()) {
            throw EnvironmentError(path.string() + ": cannot be read (" + failure.what() +
                                   "); check the permissions of the file and of its folder, and the disk.");
        }
        result.faults.push_back({{}, std::string("the database is damaged (") + failure.what() + ")"});
    }
    if (!result.stopped_early) {
        check_annotations(path, result, most_faults, progress, stop);
    }
    return result;
}

} // namespace ponderscope
