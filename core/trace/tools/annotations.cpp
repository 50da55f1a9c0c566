// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/annotations.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/remote/address.h"
#include "core/remote/host.h"
#include "core/trace/database.h"
#include "core/trace/shard.h"
#include "core/trace/writing/lock_file.h"
#include "core/trace/writing/store.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <type_traits>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_class_bytes = 200;
constexpr std::size_t most_name_bytes = 64;
const char* const annotate_again = "take the file from its source again, or remove it and annotate again";

/// Names with another meaning in conditions, tables or CSV headers.
constexpr std::string_view taken_names[] = {
    "and",   "begin", "document", "end",   "entropy",    "flops",       "id",
    "nll",   "or",    "position", "rank",  "run",        "probability", "max_probability",
    "steps", "text",  "sequence", "token", "text_begin", "text_end",    "token_index",
};

bool same_but_case(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](char x, char y) { return lower(x) == lower(y); });
}

std::string in_quotes(std::string_view text) {
    return "\"" + printable(text, 60) + "\"";
}

/// The class index that \p value stores; -1: not a valid index.
std::int64_t class_number(double value, std::size_t classes) {
    const bool whole = value >= 0 && value < static_cast<double>(classes) && value == std::floor(value);
    return whole ? static_cast<std::int64_t>(value) : -1;
}

} // namespace

std::string fault_of_annotation_name(std::string_view name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const bool digit_first = !name.empty() && name.front() >= '0' && name.front() <= '9';
    if (name.empty() || name.size() > most_name_bytes || digit_first ||
        !std::all_of(name.begin(), name.end(), plain)) {
        return "expected a name of letters, digits and underscores that begins with no digit, found " +
               in_quotes(name);
    }
    if (std::any_of(std::begin(taken_names), std::end(taken_names),
                    [&](std::string_view taken) { return same_but_case(taken, name); })) {
        return "expected a name that no other quantity has, found " + in_quotes(name);
    }
    return {};
}

std::string fault_of_class(std::string_view name) {
    if (name.empty() || name.size() > most_class_bytes) {
        return "expected a class of 1 to " + std::to_string(most_class_bytes) + " bytes, found " +
               std::to_string(name.size());
    }
    if (!is_valid_utf8(name)) {
        return "expected a class in UTF-8, found " + in_quotes(name);
    }
    for (std::size_t at = 0; at < name.size();) {
        const Utf8Character character = utf8_at(name, at);
        if (is_unseen(character.code)) {
            char code[16];
            std::snprintf(code, sizeof code, "U+%04X", static_cast<unsigned>(character.code));
            return "expected a class without invisible characters, found " + std::string(code) + " at byte " +
                   std::to_string(at);
        }
        at += character.bytes;
    }
    return {};
}

namespace {

/// The name of the whole trace if \p trace is a folder or pattern of its shards; else \p trace itself.
fs::path whole_of(const fs::path& trace) {
    std::vector<fs::path> shards;
    try {
        shards = find_shards(trace);
    } catch (const InputError&) {
        return trace; // opening it will report the error
    }
    std::set<fs::path> wholes;
    for (const fs::path& shard : shards) {
        const std::optional<ShardName> name = parse_shard_name(shard);
        wholes.insert(name ? name->trace : trace);
    }
    return wholes.size() == 1 ? *wholes.begin() : trace;
}

} // namespace

fs::path annotations_path(const fs::path& named) {
    const fs::path trace = whole_of(named);
    std::error_code error;
    const bool link = fs::is_symlink(fs::symlink_status(trace, error));
    return (link ? real_path(trace) : trace).string() + ".annotations";
}

void check_can_annotate(const fs::path& trace) {
    if (remote::is_remote(trace)) {
        const remote::Address there = remote::parse_address(trace);
        throw InputError(
            ErrorId::trace_remote, trace, "a trace of this machine to annotate",
            "a trace on another machine, which is read-only",
            "annotate it on that machine (ssh " + there.host + " ponderscope annotate " +
                remote::shell_quoted(there.path) +
                " …; this machine then shows the annotations), or copy the run to this machine first");
    }
}

std::string misfit_of(const AnnotationInfo& annotation, const RunInfo& run) {
    const bool text = annotation.text_digest == run.text_digest;
    const bool tokens = annotation.tokenizer_digest == run.tokenizer_digest &&
                        annotation.tokens == run.tokens && annotation.sequences == run.sequences;
    return text && tokens ? ""
                          : "the annotation " + annotation.name + " was made for " +
                                (text ? "other tokens" : "another text") + " than the run " +
                                printable(run.name) + " has now; annotate it again";
}

AnnotationReader::AnnotationReader(fs::path path)
    : path_(std::move(path)), database_(std::make_unique<Database>(path_, Database::Access::read)) {
    // Our writers replace the file, so they never lock it for SQLite. A lock is another program's.
    database_->wait_for_locks(300);
    database_->execute(
        "PRAGMA query_only=ON; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-4096");
    static const std::vector<schema::Table> tables = schema::tables_of(schema::script::annotations);
    check_tables(*database_, path_, tables);
    Statement rows = database_->prepare("SELECT id, run, name, kind, text_digest, tokenizer_digest, "
                                        "sequences, tokens, created FROM annotation ORDER BY run, name");
    while (rows.step()) {
        AnnotationInfo info{rows.integer(0),
                            rows.text(1),
                            rows.text(2),
                            rows.text(3) == "category",
                            {},
                            rows.text(4),
                            rows.text(5),
                            rows.integer(6),
                            rows.integer(7),
                            rows.text(8)};
        if (const std::string fault = fault_of_annotation_name(info.name); !fault.empty()) {
            throw InputError(ErrorId::annotation_damaged,
                             path_.string() + ": " + fault + "; " + annotate_again + ".");
        }
        if (!info.category && rows.text(3) != "number") {
            throw InputError(ErrorId::annotation_damaged, path_,
                             "an annotation of the kind number or category", in_quotes(rows.text(3)),
                             annotate_again);
        }
        read_classes(info);
        all_.push_back(std::move(info));
    }
}

void AnnotationReader::read_classes(AnnotationInfo& info) const {
    Statement rows =
        database_->prepare("SELECT number, name FROM annotation_class WHERE annotation = ? ORDER BY number");
    rows.bind(1, info.id);
    while (rows.step()) {
        const auto due = static_cast<std::int64_t>(info.classes.size());
        if (rows.integer(0) != due || info.classes.size() == most_annotation_classes) {
            throw InputError(ErrorId::annotation_damaged, path_,
                             "classes numbered from 0, at most " + std::to_string(most_annotation_classes),
                             "class number " + std::to_string(rows.integer(0)) + " in place of " +
                                 std::to_string(due),
                             annotate_again);
        }
        info.classes.push_back(rows.text(1));
        if (const std::string fault = fault_of_class(info.classes.back()); !fault.empty()) {
            throw InputError(ErrorId::annotation_damaged, path_.string() + ": annotation " + info.name +
                                                              ": " + fault + "; " + annotate_again + ".");
        }
    }
}

double AnnotationReader::checked(const AnnotationInfo& info, double value) const {
    if (!std::isfinite(value) || (info.category && class_number(value, info.classes.size()) < 0)) {
        throw InputError(ErrorId::annotation_damaged, path_,
                         info.category ? "the number of a class of " + info.name
                                       : "a finite number for " + info.name,
                         std::to_string(value), annotate_again);
    }
    return value;
}

std::optional<AnnotationReader> AnnotationReader::beside(const fs::path& trace) {
    const fs::path path = annotations_path(trace);
    std::error_code ignored;
    if (remote::is_remote(path) ? remote::look(path).kind == remote::Kind::none
                                : !fs::exists(fs::symlink_status(path, ignored))) {
        return std::nullopt;
    }
    check_header(path, {"annotations of a trace", schema::annotations_id, schema::annotations_version,
                        "remove it or give it another name"});
    try {
        return AnnotationReader(path);
    } catch (const SqliteFailure& failure) {
        throw_read_failure(path, failure, "sound annotations", annotate_again);
    }
}

std::vector<AnnotationInfo> AnnotationReader::of(const RunInfo& run) const {
    std::vector<AnnotationInfo> own;
    std::copy_if(all_.begin(), all_.end(), std::back_inserter(own),
                 [&](const AnnotationInfo& one) { return one.run == run.name; });
    return own;
}

std::vector<AnnotationInfo> AnnotationReader::fitting(const RunInfo& run) const {
    std::vector<AnnotationInfo> own = of(run);
    std::erase_if(own, [&](const AnnotationInfo& one) { return !misfit_of(one, run).empty(); });
    return own;
}

std::vector<double> AnnotationReader::values(const AnnotationInfo& annotation, std::int64_t sequence,
                                             std::int64_t begin, std::int64_t end) const {
    std::vector<double> values(static_cast<std::size_t>(std::max<std::int64_t>(0, end - begin)),
                               std::numeric_limits<double>::quiet_NaN());
    try {
        Statement rows = database_->prepare("SELECT position, value FROM annotation_value WHERE "
                                            "annotation = ? AND sequence = ? AND position >= ? AND "
                                            "position < ?");
        rows.bind_all(annotation.id, sequence, begin, end);
        while (rows.step()) {
            values.at(static_cast<std::size_t>(rows.integer(0) - begin)) = checked(annotation, rows.real(1));
        }
    } catch (const SqliteFailure& failure) {
        throw_read_failure(path_, failure, "sound annotations", annotate_again);
    }
    return values;
}

void AnnotationReader::each(const AnnotationInfo& annotation, const Visit& visit) const {
    try {
        Statement rows = database_->prepare("SELECT sequence, position, value FROM annotation_value "
                                            "WHERE annotation = ? ORDER BY sequence, position");
        rows.bind(1, annotation.id);
        while (rows.step()) {
            visit(rows.integer(0), rows.integer(1), checked(annotation, rows.real(2)));
        }
    } catch (const SqliteFailure& failure) {
        throw_read_failure(path_, failure, "sound annotations", annotate_again);
    }
}

AnnotationInfo find_annotation(const std::optional<AnnotationReader>& annotations, const fs::path& trace,
                               const RunInfo& run, const std::string& name) {
    std::string there;
    for (const AnnotationInfo& one : annotations ? annotations->of(run) : std::vector<AnnotationInfo>()) {
        if (one.name == name) {
            if (const std::string misfit = misfit_of(one, run); !misfit.empty()) {
                throw InputError(ErrorId::annotation_other,
                                 annotations->path().string() + ": " + misfit + ".");
            }
            return one;
        }
        there += (there.empty() ? "" : ", ") + one.name;
    }
    throw InputError(ErrorId::trace_signal, trace.string() + "#" + run.name,
                     "an annotation named " + printable(name),
                     there.empty() ? "a run without annotations" : "the annotations " + there,
                     there.empty() ? "make one with ponderscope annotate" : "name one of them");
}

namespace {

/// Writes a new file under a temporary name, and renames it when it is complete.
class AnnotationWriter {
public:
    explicit AnnotationWriter(const fs::path& path)
        : path_(path),
          file_(path),
          database_(guarded([&] { return Database(file_.temporary_path(), Database::Access::write); })) {
        guarded([&] {
            database_.execute(
                "PRAGMA page_size=16384; PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; BEGIN");
            database_.execute(schema::script::annotations);
            value_ = database_.prepare("INSERT INTO annotation_value VALUES (?,?,?,?)");
        });
    }

    void begin(const AnnotationInfo& info) {
        ++id_;
        guarded([&] {
            database_.prepare("INSERT INTO annotation VALUES (?,?,?,?,?,?,?,?,?)")
                .run(id_, info.run, info.name, info.category ? "category" : "number", info.text_digest,
                     info.tokenizer_digest, info.sequences, info.tokens, info.created);
            Statement one = database_.prepare("INSERT INTO annotation_class VALUES (?,?,?)");
            for (std::size_t i = 0; i < info.classes.size(); ++i) {
                one.run(id_, i, info.classes[i]);
            }
        });
    }
    void put(std::int64_t sequence, std::int64_t position, double value) {
        guarded([&] { value_.run(id_, sequence, position, value); });
    }
    void commit() {
        guarded([&] {
            database_.execute("COMMIT");
            value_ = Statement();
            database_.close();
        });
        file_.commit();
    }

private:
    template <class Body>
    std::invoke_result_t<Body> guarded(Body body) {
        try {
            return body();
        } catch (const SqliteFailure& failure) {
            throw write_failure(path_, failure, false);
        }
    }

    fs::path path_;
    AtomicFile file_;
    Database database_;
    Statement value_;
    std::int64_t id_ = 0;
};

LockFile lock(const fs::path& trace) {
    check_can_annotate(trace);
    return LockFile(annotations_path(trace), "annotations without a writer",
                    "annotations that another program is writing");
}

/// Copies each annotation to the run that \p run_of returns; skips it if \p run_of returns "".
void copy(const AnnotationReader& from, const std::function<std::string(const AnnotationInfo&)>& run_of,
          std::optional<AnnotationWriter>& to, const fs::path& trace) {
    for (AnnotationInfo info : from.all()) {
        if (const std::string run = run_of(info); !run.empty()) {
            if (!to) {
                to.emplace(annotations_path(trace));
            }
            info.run = run;
            to->begin(info);
            from.each(info, [&](std::int64_t sequence, std::int64_t position, double value) {
                to->put(sequence, position, value);
            });
        }
    }
}

/// Replaces the file by a copy() of it. Removes the file if no annotation is left.
void rewrite(const fs::path& trace, const std::optional<AnnotationReader>& old,
             const std::function<std::string(const AnnotationInfo&)>& run_of) {
    std::optional<AnnotationWriter> writer;
    if (old) {
        copy(*old, run_of, writer, trace);
    }
    if (writer) {
        writer->commit();
    } else {
        fs::remove(annotations_path(trace));
    }
}

void check(const fs::path& trace, const RunInfo& run, const std::vector<SequenceInfo>& sequences,
           const Annotation& one) {
    const std::string where = trace.string() + "#" + run.name + ": annotation " + printable(one.name) + ": ";
    std::string fault = fault_of_annotation_name(one.name);
    for (const std::string& name : one.classes) {
        fault = fault.empty() ? fault_of_class(name) : fault;
    }
    if (!fault.empty()) {
        throw InputError(ErrorId::annotation_table, where + fault + ".");
    }
    if (one.classes.size() > most_annotation_classes) {
        throw InputError(ErrorId::annotation_table,
                         where + "expected at most " + std::to_string(most_annotation_classes) +
                             " classes, found " + std::to_string(one.classes.size()) +
                             "; choose another column.");
    }
    if (one.values.size() != sequences.size()) {
        throw InputError(ErrorId::input_invalid,
                         where + "expected values for " + std::to_string(sequences.size()) +
                             " sequences, found values for " + std::to_string(one.values.size()) + ".");
    }
    bool any = false;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
        if (static_cast<std::int64_t>(one.values[s].size()) != sequences[s].tokens) {
            throw InputError(ErrorId::input_invalid, where + "sequence " + std::to_string(s) + " has " +
                                                         std::to_string(sequences[s].tokens) +
                                                         " tokens, found " +
                                                         std::to_string(one.values[s].size()) + " values.");
        }
        for (const double value : one.values[s]) {
            any = any || !std::isnan(value);
            if (std::isinf(value) ||
                (one.category && !std::isnan(value) && class_number(value, one.classes.size()) < 0)) {
                throw InputError(ErrorId::input_invalid,
                                 where + "expected finite numbers or class numbers, found " +
                                     std::to_string(value) + ".");
            }
        }
    }
    if (!any) {
        throw InputError(ErrorId::annotation_table,
                         where + "expected a value for one token at least, found none; fill the column.");
    }
}

} // namespace

void put_annotations(const fs::path& trace, const RunInfo& run, const std::vector<SequenceInfo>& sequences,
                     const std::vector<Annotation>& annotations) {
    std::set<std::string> names;
    for (const Annotation& one : annotations) {
        check(trace, run, sequences, one);
        const auto clash = std::find_if(names.begin(), names.end(), [&](const std::string& other) {
            return same_but_case(other, one.name);
        });
        if (clash != names.end()) {
            throw InputError(ErrorId::annotation_table, trace.string() + "#" + run.name +
                                                            ": the annotations " + *clash + " and " +
                                                            one.name + " have the same name; rename one.");
        }
        names.insert(one.name);
    }
    const LockFile held = lock(trace);
    const std::optional<AnnotationReader> old = AnnotationReader::beside(trace);
    for (const AnnotationInfo& other : old ? old->of(run) : std::vector<AnnotationInfo>()) {
        for (const std::string& name : names) {
            if (other.name != name && same_but_case(other.name, name)) {
                throw InputError(ErrorId::trace_signal,
                                 trace.string() + "#" + run.name +
                                     ": the run has an annotation with this name in another case, " +
                                     other.name + "; use that name, or rename " + name + ".");
            }
        }
    }
    std::optional<AnnotationWriter> writer(std::in_place, annotations_path(trace));
    if (old) {
        copy(
            *old,
            [&](const AnnotationInfo& info) {
                return info.run == run.name && names.contains(info.name) ? "" : info.run;
            },
            writer, trace);
    }
    for (const Annotation& one : annotations) {
        writer->begin({0, run.name, one.name, one.category, one.classes, run.text_digest,
                       run.tokenizer_digest, run.sequences, run.tokens, utc_now()});
        for (std::size_t s = 0; s < one.values.size(); ++s) {
            for (std::size_t t = 0; t < one.values[s].size(); ++t) {
                if (!std::isnan(one.values[s][t])) {
                    writer->put(sequences[s].number, static_cast<std::int64_t>(t), one.values[s][t]);
                }
            }
        }
    }
    writer->commit();
}

void remove_annotations(const fs::path& trace, const RunInfo& run, const std::vector<std::string>& names) {
    const LockFile held = lock(trace);
    const std::optional<AnnotationReader> old = AnnotationReader::beside(trace);
    const std::vector<AnnotationInfo> own = old ? old->of(run) : std::vector<AnnotationInfo>();
    for (const std::string& name : names) {
        if (std::none_of(own.begin(), own.end(), [&](const auto& one) { return one.name == name; })) {
            static_cast<void>(find_annotation(old, trace, run, name)); // throws
        }
    }
    rewrite(trace, old, [&](const AnnotationInfo& info) {
        const bool gone =
            info.run == run.name && std::find(names.begin(), names.end(), info.name) != names.end();
        return gone ? "" : info.run;
    });
}

void rename_annotations(const fs::path& trace, const std::string& run, const std::string& name) {
    const LockFile held = lock(trace);
    const std::optional<AnnotationReader> old = AnnotationReader::beside(trace);
    if (old && std::any_of(old->all().begin(), old->all().end(),
                           [&](const auto& info) { return info.run == run || info.run == name; })) {
        // Drop annotations under the new name: they belonged to an earlier run with other tokens.
        rewrite(trace, old, [&](const AnnotationInfo& info) {
            return info.run == name ? "" : info.run == run ? name : info.run;
        });
    }
}

void copy_annotations(const fs::path& trace, const std::vector<AnnotationsToCopy>& runs) {
    std::optional<AnnotationWriter> writer;
    for (const AnnotationsToCopy& one : runs) {
        copy(
            *one.from,
            [&](const AnnotationInfo& info) { return info.run == one.run ? one.name : std::string(); },
            writer, trace);
    }
    if (writer) {
        writer->commit();
    }
}

} // namespace ponderscope
