// SPDX-License-Identifier: GPL-3.0-or-later
// `annotate`: adds columns to the tokens of a run, in a file beside the trace.
#include "app/cli/console.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/base/utf8.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/tools/placed_rows.h"
#include "core/trace/tools/step_columns.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

namespace ponderscope::cli {
namespace {

constexpr const char* header =
    "a header with the columns sequence,token or document,begin,end and a column for each annotation";

std::string_view without_blanks(std::string_view text) {
    const auto begin = std::min(text.find_first_not_of(" \t"), text.size());
    return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// The number in \p text; no value if \p text is not a single number. Infinity: too large for 64 bits.
std::optional<double> number_in(std::string_view text) {
    text = without_blanks(text);
    text.remove_prefix(text.starts_with('+') && !text.starts_with("+-") ? 1 : 0);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return error == std::errc() ? value : std::numeric_limits<double>::infinity();
}

/// A column of the table as values by row; NaN for an empty field. In a column of numbers, the text "NaN"
/// also gives NaN. \p notice: why a column with numbers became a category.
Annotation column_of(const PlacedTable& table, std::size_t column, bool category, std::vector<double>& by_row,
                     std::string& notice) {
    const std::vector<std::string>& fields = table.columns[column];
    const auto line = [&](std::size_t row) {
        return table.file.string() + ": line " + std::to_string(table.rows[row].line) + ": ";
    };
    const auto is_word = [](const std::string& field) {
        return !without_blanks(field).empty() && !number_in(field);
    };
    const auto word = std::ranges::find_if(fields, is_word);
    const bool words = word != fields.end();
    Annotation one;
    one.name = table.names[column];
    one.category = category || words;
    std::map<std::string, std::size_t> numbers;
    by_row.clear();
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const std::string field(words ? std::string_view(fields[i]) : without_blanks(fields[i]));
        const std::optional<double> number = number_in(field);
        if (without_blanks(field).empty() || (!words && std::isnan(*number))) {
            by_row.push_back(not_a_number);
        } else if (!one.category) {
            if (std::isinf(*number)) {
                throw InputError(ErrorId::text_line, line(i) + "expected a finite number in column " +
                                                         one.name + ", found \"" + printable(field, 40) +
                                                         "\".");
            }
            by_row.push_back(*number);
        } else {
            const auto [entry, fresh] = numbers.emplace(field, one.classes.size());
            if (fresh) {
                one.classes.push_back(field);
            }
            if (const std::string fault = fault_of_class(field); fresh && !fault.empty()) {
                throw InputError(ErrorId::text_line, line(i) + fault + ".");
            }
            by_row.push_back(static_cast<double>(entry->second));
        }
    }
    const auto is_number = [](const std::string& field) { return number_in(field).has_value(); };
    if (words && !category && std::ranges::any_of(fields, is_number)) {
        notice += line(static_cast<std::size_t>(word - fields.begin())) + "\"" + printable(*word, 40) +
                  "\" is not a number, so " + one.name + " becomes a category and its numbers classes.\n";
    }
    return one;
}

std::vector<Annotation> annotations_in(const PlacedTable& table, const TraceReader& reader,
                                       const RunInfo& run, const std::vector<std::string>& categories,
                                       std::string& notices) {
    for (const std::string& name : categories) {
        if (std::ranges::find(table.names, name) == table.names.end()) {
            throw InputError(ErrorId::annotation_table, table.file, "a column " + name + " for --category",
                             "no column of this name", "name a column of the table with --category");
        }
    }
    const std::vector<SequenceInfo> sequences = reader.sequences(run.id);
    const PlacedTokens placed(reader, run, table.file, table.by_bytes, table.rows, sequences);
    std::vector<std::vector<std::int32_t>> rows; // [sequence][token]
    for (const SequenceInfo& sequence : sequences) {
        placed.check_length(sequence);
        const TokenColumns tokens = reader.tokens(run.id, sequence.number);
        rows.emplace_back();
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            rows.back().push_back(placed.entry_of(sequence, tokens, i));
        }
    }
    std::vector<Annotation> all;
    std::vector<double> by_row;
    for (std::size_t c = 0; c < table.names.size(); ++c) {
        const bool category = std::ranges::find(categories, table.names[c]) != categories.end();
        Annotation one = column_of(table, c, category, by_row, notices);
        for (const std::vector<std::int32_t>& of : rows) {
            one.values.emplace_back();
            for (const std::int32_t row : of) {
                one.values.back().push_back(row < 0 ? not_a_number : by_row[static_cast<std::size_t>(row)]);
            }
        }
        all.push_back(std::move(one));
    }
    return all;
}

struct AnnotateVerb {
    std::string reference, named; ///< named: the run of --run
    std::filesystem::path csv;
    std::vector<std::string> categories, removed, derived;
    std::string from;
    bool json = false;

    void run() const;
};

/// Lists the current annotations of the given runs.
void list(const RunReference& where, const std::vector<RunInfo>& runs, bool json) {
    const std::optional<AnnotationReader> annotations = AnnotationReader::beside(where.trace);
    nlohmann::json rows = nlohmann::json::array();
    for (const RunInfo& run : runs) {
        for (const AnnotationInfo& one : annotations ? annotations->of(run) : std::vector<AnnotationInfo>()) {
            std::int64_t values = 0;
            annotations->each(one, [&](std::int64_t, std::int64_t, double) { ++values; });
            const std::string misfit = misfit_of(one, run);
            rows.push_back({{"run", run.name},
                            {"name", one.name},
                            {"kind", one.category ? "category" : "number"},
                            {"classes", one.classes},
                            {"tokens_with_value", values},
                            {"tokens", run.tokens},
                            {"created", one.created},
                            {"fits", misfit.empty()}});
            if (!json) {
                std::cout << where.trace.string() << "#" << visible(run.name) << "  " << one.name << "  "
                          << (one.category ? std::to_string(one.classes.size()) + " classes" : "numbers")
                          << "  " << with_separators(values) << " of " << with_separators(run.tokens)
                          << " tokens" << (misfit.empty() ? "" : "  (" + misfit + ")") << "\n";
            }
        }
    }
    if (json) {
        print_json(rows);
    } else if (rows.empty()) {
        std::cout << where.trace.string() << ": no annotations\n";
    }
}

/// Computes each NAME=COLUMN from the run, or from another run over the same tokens (\p from).
std::vector<Annotation> derived_columns(const std::vector<std::string>& wanted, const TraceReader& reader,
                                        const RunInfo& run, const std::string& from) {
    std::optional<TraceReader> other;
    RunInfo source = run;
    if (!from.empty()) {
        const RunReference where = parse_run_reference(from);
        other = TraceReader::open(where.trace);
        source = find_run(*other, where.run);
        require_same_tokens(reader, run, *other, source);
    }
    std::vector<Annotation> all;
    for (const std::string& one : wanted) {
        const std::size_t equals = one.find('=');
        if (equals == std::string::npos) {
            throw InputError(ErrorId::usage_value,
                             "--derive: expected NAME=COLUMN, such as gain=nll@0-nll@last, found \"" +
                                 printable(one) + "\".");
        }
        const StepColumn column = StepColumn::parse(one.substr(equals + 1));
        for (const auto& term : {std::optional(column.of), column.minus}) {
            if (term && term->step.value_or(0) > source.max_steps) {
                throw InputError(ErrorId::usage_value, "--derive: expected a step from 0 to " +
                                                           std::to_string(source.max_steps) +
                                                           " or `last`, found " + printable(term->signal) +
                                                           "@" + std::to_string(*term->step) + ".");
            }
        }
        all.push_back(annotation_by_step(other ? *other : reader, source, one.substr(0, equals), column));
    }
    return all;
}

void AnnotateVerb::run() const {
    RunReference where = parse_run_reference(reference);
    if (!named.empty() && !where.run.empty() && named != where.run) {
        throw InputError(ErrorId::usage_conflict, "expected the name of one run, found " + where.run +
                                                      " after # and " + named +
                                                      " with --run; give the name once.");
    }
    where.run = named.empty() ? where.run : named;
    const bool changes = !csv.empty() || !removed.empty() || !derived.empty();
    if (changes) {
        check_can_annotate(where.trace);
    }
    const TraceReader reader = TraceReader::open(where.trace);
    if (!changes && where.run.empty()) {
        list(where, reader.runs(), json);
        return;
    }
    const RunInfo chosen = find_run(reader, where.run);
    std::vector<Annotation> made = derived_columns(derived, reader, chosen, from);
    std::string notices;
    if (!csv.empty()) {
        const PlacedTable table = PlacedTable::read(csv, header);
        for (Annotation& one : annotations_in(table, reader, chosen, categories, notices)) {
            made.push_back(std::move(one));
        }
    }
    if (!made.empty()) { // write all columns or none
        put_annotations(where.trace, chosen, reader.sequences(chosen.id), made);
        std::cerr << notices;
    }
    if (!removed.empty()) {
        remove_annotations(where.trace, chosen, removed);
    }
    list(where, {chosen}, json);
}

} // namespace

void add_annotate(CLI::App& program) {
    auto [app, verb] = add_verb<AnnotateVerb>(program, "annotate");
    app.add_option("trace", verb.reference,
                   "TRACE.ponder#RUN; the name is optional if the trace has only one run")
        ->required();
    app.add_option("--run", verb.named, "Name of the run, if not given by #")->type_name("NAME");
    app.add_option(
           "--csv", verb.csv,
           "Table with a header: sequence,token or document,begin,end (bytes of the text), then a column for "
           "each annotation. sequence is a number from 0 or a title, document a title or a number; a run "
           "with one sequence needs neither. A column with a text is a category, any other column has "
           "numbers. An empty field, or NaN among numbers, is no value. Annotations of the same name are "
           "replaced")
        ->type_name("FILE.csv");
    app.add_option("--category", verb.categories, "Columns whose numbers are classes of a category")
        ->needs("--csv")
        ->type_name("NAME");
    app.add_option(
           "--derive", verb.derived,
           "A column computed from signals of the run: a signal at a step (nll@0, gate@last), a difference "
           "of two (nll@0-nll@last is the gain from pondering), or a signal with one value a token "
           "(prediction_depth, answer_flips). Each value belongs to the predicted token")
        ->type_name("NAME=COLUMN");
    app.add_option("--from", verb.from, "Derive the columns from this run, which must have the same tokens")
        ->needs("--derive")
        ->type_name("TRACE.ponder#RUN");
    app.add_option("--remove", verb.removed, "Annotations to remove")
        ->excludes("--csv")
        ->excludes("--derive")
        ->type_name("NAME");
    app.add_flag("--json", verb.json, "Print the list as JSON");
    app.footer(
        "Without --csv, --derive and --remove, annotate lists the annotations. The trace does not change: "
        "annotations are stored beside it, in TRACE.ponder.annotations.\n"
        "Example:\n  ponderscope annotate story.ponder --csv parts-of-speech.csv\n"
        "  ponderscope annotate story.ponder --derive gain=nll@0-nll@last\n"
        "  ponderscope annotate 'story.ponder#learned' --derive gain=nll@0-nll@last --from "
        "'story.ponder#full'\n"
        "  ponderscope stats story.ponder --by part_of_speech");
}

} // namespace ponderscope::cli
