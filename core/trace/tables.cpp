// SPDX-License-Identifier: GPL-3.0-or-later
// The columns of schema.sql as members of structs, in the order of schema.sql.
#include "core/trace/rows.h"

namespace ponderscope::schema {
namespace {

namespace rule {
constexpr Rule count{"? >= 0", "not below 0"};
constexpr Rule positive{"? >= 1", "above 0"};
constexpr Rule flag{"? IN (0, 1)", "0 or 1"};
constexpr Rule not_empty{"? <> ''", "not empty"};
constexpr Rule sequence_id{"? BETWEEN 1 AND 2147483647", "from 1 to 2147483647"};
constexpr Rule step_or_layer{"? IN ('step', 'layer')", "step or layer"};
constexpr Rule plain_name{"length(?) BETWEEN 1 AND 100 AND ? NOT GLOB '*[^A-Za-z0-9_.-]*'",
                          "1 to 100 letters, digits, _ . and -"};
constexpr Rule storage{"? IN ('plain', 'compressed', 'trimmed')", "plain, compressed or trimmed"};
constexpr Rule dtype{
    "? IN ('BOOL', 'U8', 'I8', 'U16', 'I16', 'U32', 'I32', 'U64', 'I64', 'F16', 'BF16', 'F32', 'F64')",
    "a type such as F32 or I32"};
constexpr Rule digest{"? = '' OR (length(?) = 64 AND ? NOT GLOB '*[^0-9a-f]*')",
                      "a SHA-256 in 64 hexadecimal digits, or empty"};
constexpr Rule time{
    "? GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]*Z' AND "
    "(substr(?, 20) = 'Z' OR (substr(?, 20) GLOB '.[0-9]*Z' AND "
    "substr(?, 20, length(?) - 20) NOT GLOB '.*[^0-9]*'))",
    "a time like 2026-11-21T11:45:00Z"};
// CASE guarantees that json_valid is tested first; AND does not.
constexpr Rule json_object{"CASE WHEN json_valid(?) THEN json_type(?) = 'object' ELSE 0 END",
                           "a JSON object"};
constexpr Rule json_object_or_empty{
    "CASE WHEN ? = '' THEN 1 WHEN json_valid(?) THEN json_type(?) = 'object' ELSE 0 END",
    "a JSON object, or empty"};
constexpr Rule json_texts{"CASE WHEN json_valid(?) THEN json_type(?) = 'array' AND NOT EXISTS "
                          "(SELECT 1 FROM json_each(?) WHERE type <> 'text') ELSE 0 END",
                          "a JSON array of texts"};
constexpr Rule axes{
    "CASE WHEN json_valid(?) THEN json_type(?) = 'array' AND json_extract(?, '$[0]') = 'token' AND "
    "NOT EXISTS (SELECT 1 FROM json_each(?) WHERE type <> 'text' OR "
    "length(value) NOT BETWEEN 1 AND 100 OR value GLOB '*[^A-Za-z0-9_.-]*') ELSE 0 END",
    "a JSON array of names that begins with token"};
} // namespace rule

constexpr Field<RunInfo> run_columns[] = {
    {"id", &RunInfo::id},
    {"name", &RunInfo::name, &rule::not_empty},
    {"checkpoint", &RunInfo::checkpoint},
    {"checkpoint_digest", &RunInfo::checkpoint_digest, &rule::digest},
    {"architecture", &RunInfo::architecture},
    {"method", &RunInfo::method},
    {"depth_mixing", &RunInfo::depth_mixing},
    {"policy", &RunInfo::policy, nullptr, Text::document},
    {"scoring", &RunInfo::scoring},
    {"device", &RunInfo::device},
    {"dtype", &RunInfo::dtype},
    {"record_level", &RunInfo::record_level},
    {"text_source", &RunInfo::text_source, nullptr, Text::document},
    {"text_digest", &RunInfo::text_digest, &rule::digest},
    {"tokenizer_digest", &RunInfo::tokenizer_digest, &rule::digest},
    {.name = "tokenizer", .member = &RunInfo::tokenizer, .exported = false},
    {"versions", &RunInfo::versions, &rule::json_object, Text::document, false},
    {"config", &RunInfo::config, &rule::json_object_or_empty, Text::document, false},
    {"notices", &RunInfo::notices, &rule::json_texts, Text::document, false},
    {"seed", &RunInfo::seed},
    {"max_steps", &RunInfo::max_steps, &rule::count},
    {"layers", &RunInfo::layers, &rule::count},
    {"vocab_size", &RunInfo::vocab_size, &rule::positive},
    {"context", &RunInfo::context, &rule::count},
    {"stride", &RunInfo::stride, &rule::count},
    {"started", &RunInfo::started, &rule::time},
    {"seconds", &RunInfo::seconds, &rule::count},
    {"complete", &RunInfo::complete, &rule::flag},
    {"sequences", &RunInfo::sequences},
    {"tokens", &RunInfo::tokens},
    {"scored_tokens", &RunInfo::scored_tokens},
    {"nll_sum", &RunInfo::nll_sum},
    {"steps_sum", &RunInfo::steps_sum},
    {"flops_sum", &RunInfo::flops_sum},
    {"scored_bytes", &RunInfo::scored_bytes},
    {"flops_model", &RunInfo::flops_model, &rule::json_object_or_empty, Text::document, false},
    {"step_unit", &RunInfo::step_unit, &rule::step_or_layer},
    {"choices", &RunInfo::choices, nullptr, Text::document},
};
constexpr Field<SequenceInfo> sequence_columns[] = {
    {.name = "id", .member = &SequenceInfo::id, .rule = &rule::sequence_id, .exported = false},
    {"run", &SequenceInfo::run},
    {"number", &SequenceInfo::number},
    {"title", &SequenceInfo::title},
    {"text_bytes", &SequenceInfo::text_bytes, &rule::count},
    {"tokens", &SequenceInfo::tokens, &rule::count},
    {"scored_tokens", &SequenceInfo::scored_tokens},
    {"nll_sum", &SequenceInfo::nll_sum},
    {"steps_sum", &SequenceInfo::steps_sum},
    {"flops_sum", &SequenceInfo::flops_sum},
    {"scored_bytes", &SequenceInfo::scored_bytes},
    {"complete", &SequenceInfo::complete},
    {.name = "group", .member = &SequenceInfo::group, .nullable = true},
    {.name = "text_crc32", .member = &SequenceInfo::text_crc32, .exported = false, .nullable = true},
    {.name = "tokens_crc32", .member = &SequenceInfo::tokens_crc32, .exported = false, .nullable = true},
    {.name = "joined_number", .member = &SequenceInfo::joined_number, .nullable = true},
};
constexpr Field<SignalInfo> signal_columns[] = {
    {"id"},
    {"run"},
    {"name", &SignalInfo::name, &rule::plain_name},
    {"axes", &SignalInfo::axes, &rule::axes},
    {"unit", &SignalInfo::unit},
    {"title", &SignalInfo::title},
    {"description", &SignalInfo::description},
    {"dtype", &SignalInfo::dtype, &rule::dtype},
    {"storage", &SignalInfo::storage, &rule::storage},
    {"every_step", &SignalInfo::every_step, &rule::flag},
    {"of_target", &SignalInfo::of_target, &rule::flag},
};
constexpr Field<FaultInfo> fault_columns[] = {
    {"id"},
    {"run", &FaultInfo::run},
    {.name = "sequence", .member = &FaultInfo::sequence, .nullable = true},
    {"time", &FaultInfo::time},
    {"message", &FaultInfo::message, nullptr, Text::document},
};
constexpr Field<TrainingInfo> training_columns[] = {
    {"id", &TrainingInfo::id},
    {"name", &TrainingInfo::name},
    {.name = "description", .member = &TrainingInfo::description, .text = Text::document, .exported = false},
    {"architecture", &TrainingInfo::architecture},
    {"method", &TrainingInfo::method},
    {"depth_mixing", &TrainingInfo::depth_mixing},
    {.name = "recipe", .member = &TrainingInfo::recipe, .text = Text::document, .exported = false},
    {.name = "config", .member = &TrainingInfo::config, .text = Text::document, .exported = false},
    {"device", &TrainingInfo::device},
    {"precision", &TrainingInfo::precision},
    {.name = "versions", .member = &TrainingInfo::versions, .text = Text::document, .exported = false},
    {"parameters", &TrainingInfo::parameters},
    {"max_steps", &TrainingInfo::max_steps},
    {"planned_steps", &TrainingInfo::planned_steps},
    {"planned_tokens", &TrainingInfo::planned_tokens},
    {"started", &TrainingInfo::started},
    {"step", &TrainingInfo::step},
    {"tokens", &TrainingInfo::tokens},
    {"seconds", &TrainingInfo::seconds},
    {"complete", &TrainingInfo::complete},
    {"fault", &TrainingInfo::fault, nullptr, Text::document},
};
constexpr Field<TrainingQuantity> training_quantity_columns[] = {
    {"training"},
    {"name", &TrainingQuantity::name},
    {"axis", &TrainingQuantity::axis},
    {"unit", &TrainingQuantity::unit},
    {"title", &TrainingQuantity::title},
    {"description", &TrainingQuantity::description},
};

} // namespace

template <>
std::span<const Field<RunInfo>> fields() {
    return run_columns;
}
template <>
std::span<const Field<SequenceInfo>> fields() {
    return sequence_columns;
}
template <>
std::span<const Field<SignalInfo>> fields() {
    return signal_columns;
}
template <>
std::span<const Field<FaultInfo>> fields() {
    return fault_columns;
}
template <>
std::span<const Field<TrainingInfo>> fields() {
    return training_columns;
}
template <>
std::span<const Field<TrainingQuantity>> fields() {
    return training_quantity_columns;
}

} // namespace ponderscope::schema
