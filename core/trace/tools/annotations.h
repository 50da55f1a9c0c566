// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/database.h"
#include "core/trace/records.h"
#include "core/trace/schema.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// A number or a category (such as a part of speech) for each token of a run, beside the recorded data. Kept
/// in a file beside the trace, so that the trace does not change. It belongs to the token itself, as its id,
/// and not to a prediction.
struct AnnotationInfo {
    std::int64_t id = 0; ///< in its file
    std::string run;     ///< its name
    std::string name;    ///< of letters, digits and underscores
    bool category = false;
    std::vector<std::string> classes; ///< of a category, by number
    /// Digests of the run when it was annotated. The values are invalid for another text or tokenizer.
    std::string text_digest, tokenizer_digest;
    std::int64_t sequences = 0, tokens = 0;
    std::string created; ///< ISO 8601, UTC
};

/// The fault of the name of an annotation, or of a class; empty: nothing. A name can be written in a
/// condition and is no quantity of a token. A class is a short line of UTF-8 without invisible characters
/// (control characters, marks of direction).
std::string fault_of_annotation_name(std::string_view name);
std::string fault_of_class(std::string_view name);
inline constexpr std::size_t most_annotation_classes = 256;

namespace schema {
inline constexpr std::int32_t annotations_id = 0x504E4441; ///< "PNDA"
inline constexpr std::int32_t annotations_version = 1;
std::span<const Table> annotation_tables();
} // namespace schema

/// TRACE.ponder.annotations of TRACE.ponder; of a link, beside its target.
std::filesystem::path annotations_path(const std::filesystem::path& named);

/// Reads the annotations beside a trace, an untrusted file, as TraceReader does.
class AnnotationReader {
public:
    /// No value: no such file. InputError: not an annotations file, or damaged. EnvironmentError: another
    /// program holds a lock on it, or the machine could not read.
    static std::optional<AnnotationReader> beside(const std::filesystem::path& trace);

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] const std::vector<AnnotationInfo>& all() const {
        return all_;
    } ///< as they were when it was opened
    /// The annotations of \p run, in the order of their names.
    [[nodiscard]] std::vector<AnnotationInfo> of(const RunInfo& run) const;
    /// The annotations of \p run that fit its tokens now.
    [[nodiscard]] std::vector<AnnotationInfo> fitting(const RunInfo& run) const;
    /// Values of tokens [begin, end) of a sequence: numbers, or numbers of classes; NaN: none.
    [[nodiscard]] std::vector<double> values(const AnnotationInfo& annotation, std::int64_t sequence,
                                             std::int64_t begin, std::int64_t end) const;
    using Visit = std::function<void(std::int64_t sequence, std::int64_t position, double value)>;
    /// Every value of it, in order.
    void each(const AnnotationInfo& annotation, const Visit& visit) const;

private:
    explicit AnnotationReader(std::filesystem::path path);
    void read_classes(AnnotationInfo& info) const;
    [[nodiscard]] double checked(const AnnotationInfo& info, double value) const;
    std::filesystem::path path_;
    std::unique_ptr<Database> database_;
    std::vector<AnnotationInfo> all_;
};

/// Why an annotation does not fit the run as it is now, one sentence without its stop; empty: it can.
std::string misfit_of(const AnnotationInfo& annotation, const RunInfo& run);

/// The annotation of that name of a run. InputError: none, or of another text.
AnnotationInfo find_annotation(const std::optional<AnnotationReader>& annotations,
                               const std::filesystem::path& trace, const RunInfo& run,
                               const std::string& name);

/// An annotation with its values by sequence and token: [sequence][token], NaN for none.
struct Annotation {
    std::string name;
    bool category = false;
    std::vector<std::string> classes;
    std::vector<std::vector<double>> values;
};

/// InputError: the trace is on another machine and read-only; names the remedy.
void check_can_annotate(const std::filesystem::path& trace);
/// Puts annotations of a run beside its trace; those of the same names are replaced, others stay. All or
/// nothing. InputError: a name or a class that cannot be, values of another length, an infinite value;
/// another process annotates. EnvironmentError.
void put_annotations(const std::filesystem::path& trace, const RunInfo& run,
                     const std::vector<SequenceInfo>& sequences, const std::vector<Annotation>& annotations);
/// Removes annotations. InputError: the run has no annotation of one of the names.
void remove_annotations(const std::filesystem::path& trace, const RunInfo& run,
                        const std::vector<std::string>& names);

/// Renames a run in the annotations. Annotations of a run that had the new name before are removed.
void rename_annotations(const std::filesystem::path& trace, const std::string& run, const std::string& name);

/// Annotations of a run that has another name in another file.
struct AnnotationsToCopy {
    const AnnotationReader* from;
    std::string run;  ///< in `from`
    std::string name; ///< in the new file
};
/// Writes a new file with all of them; none: no file.
void copy_annotations(const std::filesystem::path& trace, const std::vector<AnnotationsToCopy>& runs);

} // namespace ponderscope
