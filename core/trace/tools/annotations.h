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

/// A number or a category (such as a part of speech) for each token of a run. A file beside the trace stores
/// annotations, so the trace does not change. A value describes the token itself, not a prediction.
struct AnnotationInfo {
    std::int64_t id = 0; ///< id in the annotations file
    std::string run;     ///< name of the run
    std::string name;    ///< letters, digits and underscores
    bool category = false;
    std::vector<std::string> classes; ///< classes of a category, by number
    /// Digests of the annotated run. The annotation is invalid for another text or tokenizer.
    std::string text_digest, tokenizer_digest;
    std::int64_t sequences = 0, tokens = 0;
    std::string created; ///< ISO 8601, UTC
};

/// The error in the name of an annotation or class. Empty: the name is valid. Conditions use annotations and
/// token quantities by name, so an annotation cannot have a quantity's name. A class is a short line of UTF-8
/// without invisible characters (control characters, direction marks).
std::string fault_of_annotation_name(std::string_view name);
std::string fault_of_class(std::string_view name);
inline constexpr std::size_t most_annotation_classes = 256;

namespace schema {
inline constexpr std::int32_t annotations_id = 0x504E4441; ///< "PNDA"
inline constexpr std::int32_t annotations_version = 1;
} // namespace schema

/// TRACE.ponder.annotations for TRACE.ponder. If \p named is a link, the file is beside the link's target.
std::filesystem::path annotations_path(const std::filesystem::path& named);

/// Reads the annotations beside a trace. Treats the file as untrusted, like TraceReader.
class AnnotationReader {
public:
    /// No value: the file does not exist. InputError: not an annotations file, or damaged. EnvironmentError:
    /// another program holds a lock, or the machine could not read.
    static std::optional<AnnotationReader> beside(const std::filesystem::path& trace);

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] const std::vector<AnnotationInfo>& all() const { return all_; } ///< read at opening
    /// The annotations of \p run, sorted by name.
    [[nodiscard]] std::vector<AnnotationInfo> of(const RunInfo& run) const;
    /// The annotations of \p run that match its current tokens (misfit_of is empty).
    [[nodiscard]] std::vector<AnnotationInfo> fitting(const RunInfo& run) const;
    /// Values of tokens [begin, end) of a sequence: numbers, or indices of classes; NaN: no value.
    [[nodiscard]] std::vector<double> values(const AnnotationInfo& annotation, std::int64_t sequence,
                                             std::int64_t begin, std::int64_t end) const;
    using Visit = std::function<void(std::int64_t sequence, std::int64_t position, double value)>;
    /// Visits every value of an annotation, in order.
    void each(const AnnotationInfo& annotation, const Visit& visit) const;

private:
    explicit AnnotationReader(std::filesystem::path path);
    void read_classes(AnnotationInfo& info) const;
    [[nodiscard]] double checked(const AnnotationInfo& info, double value) const;
    std::filesystem::path path_;
    std::unique_ptr<Database> database_;
    std::vector<AnnotationInfo> all_;
};

/// Why an annotation does not fit the current tokens of \p run, one sentence without full stop. Empty: it
/// fits.
std::string misfit_of(const AnnotationInfo& annotation, const RunInfo& run);

/// A run's annotation by name. InputError: the annotation does not exist, or belongs to another text.
AnnotationInfo find_annotation(const std::optional<AnnotationReader>& annotations,
                               const std::filesystem::path& trace, const RunInfo& run,
                               const std::string& name);

/// An annotation with its values, [sequence][token]; NaN: no value.
struct Annotation {
    std::string name;
    bool category = false;
    std::vector<std::string> classes;
    std::vector<std::vector<double>> values;
};

/// InputError: the trace is on another machine, so it is read-only. The message names the remedy.
void check_can_annotate(const std::filesystem::path& trace);
/// Stores annotations of a run beside its trace. Replaces annotations with the same names and keeps others.
/// Stores all annotations or none. InputError: an invalid name or class, values of another length, an
/// infinite value, or another process is annotating. EnvironmentError.
void put_annotations(const std::filesystem::path& trace, const RunInfo& run,
                     const std::vector<SequenceInfo>& sequences, const std::vector<Annotation>& annotations);
/// Removes annotations. InputError: the run lacks an annotation with one of the names.
void remove_annotations(const std::filesystem::path& trace, const RunInfo& run,
                        const std::vector<std::string>& names);

/// Renames a run in the annotations. Removes annotations that already belong to the new name.
void rename_annotations(const std::filesystem::path& trace, const std::string& run, const std::string& name);

/// The annotations of a run to copy into another file, perhaps under another run name.
struct AnnotationsToCopy {
    const AnnotationReader* from;
    std::string run;  ///< name in `from`
    std::string name; ///< name in the new file
};
/// Writes a new file with all these annotations; no file if there are none.
void copy_annotations(const std::filesystem::path& trace, const std::vector<AnnotationsToCopy>& runs);

} // namespace ponderscope
