// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/export_csv.h"

#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/trace/rows.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/tools/check.h"
#include "core/trace/tools/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unistd.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

/// Tokens read at once.
constexpr std::int64_t rows_at_once = 1 << 14;

/// Writes one CSV file, field by field.
class Table {
public:
    Table(const fs::path& path, const std::vector<std::string>& header) : file_(path) {
        for (const std::string& name : header) {
            text(name);
        }
        end();
    }

    Table& text(std::string_view value) {
        separate();
        line_ += csv_field(value);
        return *this;
    }
    template <class Number>
    Table& number(Number value) {
        separate();
        line_ += std::isnan(static_cast<double>(value)) ? std::string() : shortest(value);
        return *this;
    }
    void end() {
        line_ += '\n';
        file_.write(line_);
        line_.clear();
        first_ = true;
    }
    void commit() { file_.commit(); }

private:
    void separate() {
        if (!first_) {
            line_ += ',';
        }
        first_ = false;
    }

    AtomicFile file_;
    std::string line_;
    bool first_ = true;
};

/// The output folder, which has a temporary name until it is complete.
class PassingFolder {
public:
    explicit PassingFolder(const fs::path& target) : target_(fs::absolute(target).lexically_normal()) {
        if (!target_.has_filename()) { // "out/"
            target_ = target_.parent_path();
        }
        std::error_code error;
        if (fs::exists(fs::symlink_status(target_, error)) &&
            !(fs::is_directory(target_, error) && fs::is_empty(target_, error))) {
            throw InputError(ErrorId::file_exists, target, "a new or empty folder",
                             "a folder with files in it, or a file", "choose another name");
        }
        passing_ = target_.string() + ".exporting-" + std::to_string(::getpid());
        if (!fs::create_directories(passing_ / "signals", error)) {
            throw EnvironmentError(ErrorId::environment_failed,
                                   target.string() + ": cannot be created (" + error.message() +
                                       "); choose a folder that you may write to.");
        }
    }
    ~PassingFolder() {
        std::error_code ignored;
        if (!passing_.empty()) {
            fs::remove_all(passing_, ignored);
        }
    }
    PassingFolder(const PassingFolder&) = delete;
    PassingFolder& operator=(const PassingFolder&) = delete;

    [[nodiscard]] fs::path operator/(const std::string& name) const { return passing_ / name; }
    void keep() {
        std::error_code error;
        fs::rename(passing_, target_, error); // replaces an empty folder
        if (error) {
            throw EnvironmentError(ErrorId::environment_failed,
                                   target_.string() + ": cannot be created (" + error.message() +
                                       "); choose a folder that you may write to.");
        }
        passing_.clear();
    }

private:
    fs::path target_;
    fs::path passing_;
};

/// The files of all signals: one for each name and set of axes, because axes may differ between runs.
class SignalTables {
public:
    explicit SignalTables(const PassingFolder& folder) : folder_(folder) {}

    Table& table(const SignalInfo& signal) {
        std::vector<std::string> key{signal.name};
        key.insert(key.end(), signal.axes.begin(), signal.axes.end());
        const auto known = tables_.find(key);
        if (known != tables_.end()) {
            return known->second;
        }
        std::string file = signal.name;
        for (int i = 2; !files_.insert(file).second; ++i) {
            file = signal.name + "." + std::to_string(i);
        }
        std::vector<std::string> header{"run", "sequence", "position"};
        for (std::size_t axis = 1; axis < signal.axes.size(); ++axis) {
            header.push_back(signal.axes[axis]);
        }
        header.emplace_back("value");
        return tables_.try_emplace(key, folder_ / ("signals/" + file + ".csv"), header).first->second;
    }
    void commit() {
        for (auto& [key, table] : tables_) {
            table.commit();
        }
    }

private:
    const PassingFolder& folder_;
    std::map<std::vector<std::string>, Table> tables_;
    std::set<std::string> files_;
};

template <class Value>
void write_values(Table& table, std::int64_t run, std::int64_t sequence, const SignalChunk& chunk,
                  const std::vector<Value>& values, const std::optional<Value>& nothing = {}) {
    std::vector<std::int64_t> at(chunk.shape.size(), 0);
    for (const Value value : values) {
        table.number(run).number(sequence).number(chunk.first + at[0]);
        for (std::size_t axis = 1; axis < at.size(); ++axis) {
            table.number(at[axis]);
        }
        (value == nothing ? table.text("") : table.number(value)).end();
        for (std::size_t axis = at.size(); axis-- > 0;) {
            if (++at[axis] < chunk.shape[axis] || axis == 0) {
                break;
            }
            at[axis] = 0;
        }
    }
}

/// Writes an empty field for a step that did not run.
void write_signal(Table& table, const SignalInfo& signal, std::int64_t run, std::int64_t sequence,
                  const SignalChunk& chunk) {
    const bool by_step = signal.axes.size() > 1 && signal.axes[1] == "step";
    if (chunk.dtype == DType::f64) {
        write_values(table, run, sequence, chunk, to_doubles(chunk));
    } else if (is_real(chunk.dtype)) {
        write_values(table, run, sequence, chunk, to_floats(chunk));
    } else {
        write_values(table, run, sequence, chunk, to_integers(chunk),
                     by_step ? std::optional<std::int64_t>(did_not_run) : std::nullopt);
    }
}

class Export {
public:
    Export(const TraceReader& reader, const std::vector<RunInfo>& runs, const PassingFolder& folder,
           const ProgressSink& progress, const std::stop_token& stop)
        : reader_(reader),
          folder_(folder),
          progress_(progress),
          stop_(stop),
          runs_(folder / "runs.csv",
                header_of(RunInfo(), {"mean_nll", "perplexity", "bits_per_byte", "mean_steps"})),
          sequences_(folder / "sequences.csv", header_of(SequenceInfo(), {})),
          annotations_(AnnotationReader::beside(reader.path())),
          annotation_names_(names_of(annotations_, runs)),
          tokens_(folder / "tokens.csv", header_of_tokens(annotation_names_)),
          signals_(folder) {}

    std::int64_t total = 0;

    void add(const RunInfo& run) {
        write_run(run);
        find_annotations_of(run);
        const std::vector<SignalInfo> signals = reader_.signal_infos(run.id);
        write_labels(run);
        for (const SequenceInfo& sequence : reader_.sequences(run.id)) {
            put_row(sequences_, sequence);
            sequences_.end();
            const std::string text = reader_.text(run.id, sequence.number);
            for (std::int64_t begin = 0; begin < sequence.tokens; begin += rows_at_once) {
                throw_if_stopped(stop_);
                const std::int64_t end = std::min(begin + rows_at_once, sequence.tokens);
                write_tokens(run, sequence.number, text, reader_.tokens(run.id, sequence.number, begin, end));
                for (const SignalInfo& signal : signals) {
                    if (const auto chunk = reader_.signal(run.id, sequence.number, signal.name, begin, end)) {
                        write_signal(signals_.table(signal), signal, run.id, sequence.number, *chunk);
                    }
                }
                done_ += end - begin;
                report_progress(progress_, {"exporting", done_, total, "tokens"});
            }
        }
    }
    void commit() {
        runs_.commit();
        sequences_.commit();
        tokens_.commit();
        if (labels_) {
            labels_->commit();
        }
        signals_.commit();
    }

private:
    template <class Row>
    static std::vector<std::string> header_of(const Row& row, const std::vector<std::string>& more) {
        std::vector<std::string> header;
        schema::each_exported(row, [&](std::string_view name, const auto&) {
            header.emplace_back(name == "number" ? "sequence" : name); // as in the other tables
        });
        header.insert(header.end(), more.begin(), more.end());
        return header;
    }

    template <class Row>
    static void put_row(Table& table, const Row& row) {
        schema::each_exported(row, [&](std::string_view, const auto& value) {
            using Value = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<Value, std::string>) {
                table.text(valid_utf8(value));
            } else if constexpr (std::is_same_v<Value, bool>) {
                table.number(static_cast<int>(value));
            } else if constexpr (std::is_arithmetic_v<Value>) {
                table.number(value);
            }
        });
    }

    void write_run(const RunInfo& run) {
        RunInfo row = run;
        row.flops_sum = run.flops_sum > 0 ? run.flops_sum : std::nan("");
        put_row(runs_, row);
        for (const double value : {mean_nll(run), perplexity(run), bits_per_byte(run), mean_steps(run)}) {
            runs_.number(value);
        }
        runs_.end();
    }

    void write_labels(const RunInfo& run) {
        for (const auto& [sequence, label] : reader_.labels(run.id)) {
            if (!labels_) {
                labels_.emplace(
                    folder_ / "labels.csv",
                    std::vector<std::string>{"run", "sequence", "text_begin", "text_end", "class"});
            }
            labels_->number(run.id).number(sequence).number(label.begin).number(label.end);
            labels_->text(valid_utf8(label.name)).end();
        }
    }

    static std::vector<std::string> names_of(const std::optional<AnnotationReader>& annotations,
                                             const std::vector<RunInfo>& runs) {
        std::set<std::string> names;
        for (const RunInfo& run : annotations ? runs : std::vector<RunInfo>()) {
            for (const AnnotationInfo& one : annotations->fitting(run)) {
                names.insert(one.name);
            }
        }
        return {names.begin(), names.end()};
    }
    static std::vector<std::string> header_of_tokens(const std::vector<std::string>& annotations) {
        std::vector<std::string> header{"run", "sequence", "position"};
        schema::each_token_field([&](const auto& field) {
            header.emplace_back(field.name);
            if (header.back() == "id") {
                header.emplace_back("text");
            }
        });
        header.insert(header.end(), annotations.begin(), annotations.end());
        return header;
    }

    /// Sets run_annotations_: for each name the annotation of \p run, or an empty one.
    void find_annotations_of(const RunInfo& run) {
        run_annotations_.assign(annotation_names_.size(), {});
        for (AnnotationInfo& one :
             annotations_ ? annotations_->fitting(run) : std::vector<AnnotationInfo>()) {
            const auto place = std::lower_bound(annotation_names_.begin(), annotation_names_.end(), one.name);
            run_annotations_[static_cast<std::size_t>(place - annotation_names_.begin())] = std::move(one);
        }
    }

    void write_tokens(const RunInfo& run, std::int64_t sequence, std::string_view text,
                      const TokenColumns& tokens) {
        std::vector<std::vector<double>> values; // of each annotation
        for (const AnnotationInfo& one : run_annotations_) {
            values.push_back(one.name.empty() ? std::vector<double>(tokens.size(), std::nan(""))
                                              : annotations_->values(
                                                    one, sequence, tokens.first,
                                                    tokens.first + static_cast<std::int64_t>(tokens.size())));
        }
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            tokens_.number(run.id).number(sequence).number(tokens.first + static_cast<std::int64_t>(i));
            schema::each_token_field([&](const auto& field) {
                const auto& column = tokens.*field.values;
                const bool unknown =
                    static_cast<const void*>(&column) == &tokens.flops && !(run.flops_sum > 0);
                unknown ? tokens_.text("") : tokens_.number(column[i]);
                if (static_cast<const void*>(&column) == &tokens.id) {
                    tokens_.text(valid_utf8(text.substr(tokens.begin[i], tokens.end[i] - tokens.begin[i])));
                }
            });
            for (std::size_t a = 0; a < values.size(); ++a) {
                const double value = values[a][i];
                if (run_annotations_[a].category && !std::isnan(value)) {
                    tokens_.text(run_annotations_[a].classes[static_cast<std::size_t>(value)]);
                } else {
                    tokens_.number(value);
                }
            }
            tokens_.end();
        }
    }

    const TraceReader& reader_;
    const PassingFolder& folder_;
    const ProgressSink& progress_;
    const std::stop_token& stop_;
    Table runs_;
    Table sequences_;
    std::optional<AnnotationReader> annotations_;
    std::vector<std::string> annotation_names_;   ///< of all exported runs, ascending
    std::vector<AnnotationInfo> run_annotations_; ///< of the current run, as annotation_names_
    Table tokens_;
    std::optional<Table> labels_; ///< if a run has labels
    SignalTables signals_;
    std::int64_t done_ = 0;
};

/// training.csv: every point of every curve, in long format.
void export_trainings(const TraceReader& reader, const fs::path& path) {
    const std::vector<TrainingInfo> trainings = reader.trainings();
    if (trainings.empty()) {
        return;
    }
    Table table(path,
                {"training", "name", "quantity", "unit", "place", "step", "tokens", "seconds", "value"});
    for (const TrainingInfo& training : trainings) {
        std::map<std::string, std::string> units;
        for (const TrainingQuantity& quantity : reader.training_quantities(training.id)) {
            units[quantity.name] = quantity.unit;
        }
        for (const TrainingCurve& curve : reader.training_curves(training.id)) {
            for (std::size_t i = 0; i < curve.size(); ++i) {
                table.number(training.id)
                    .text(valid_utf8(training.name))
                    .text(valid_utf8(curve.quantity))
                    .text(valid_utf8(units[curve.quantity]));
                table.number(curve.place).number(curve.step[i]).number(curve.tokens[i]);
                table.number(curve.seconds[i]).number(curve.value[i]).end();
            }
        }
    }
    table.commit();
}

} // namespace

void export_csv(const TraceReader& reader, const fs::path& folder, const std::vector<std::int64_t>& runs,
                const ProgressSink& progress, const std::stop_token& stop) {
    std::vector<RunInfo> chosen = runs.empty() ? reader.runs() : std::vector<RunInfo>();
    for (const std::int64_t id : runs) {
        chosen.push_back(run_by_id(reader, id));
    }
    // CSV files have no checksums, so damage would go unnoticed in them.
    require_recorded(reader.path(), runs, progress, stop);
    PassingFolder passing(folder);
    Export tables(reader, chosen, passing, progress, stop);
    for (const RunInfo& run : chosen) {
        tables.total += run.tokens;
    }
    for (const RunInfo& run : chosen) {
        tables.add(run);
    }
    tables.commit();
    if (runs.empty()) {
        export_trainings(reader, passing / "training.csv");
    }
    passing.keep();
}

} // namespace ponderscope
