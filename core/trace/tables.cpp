// SPDX-License-Identifier: GPL-3.0-or-later
// The tables and views of a trace. A new column is one line here: of a struct that rows.h reads, with its
// member.
#include "core/trace/rows.h"

#include <array>
#include <string>
#include <string_view>

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
// CASE tests in this order; AND need not.
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
    {{"id", "INTEGER PRIMARY KEY", "from 1"}, &RunInfo::id},
    {{"name", "TEXT NOT NULL UNIQUE", "what follows # in TRACE.ponder#RUN", &rule::not_empty},
     &RunInfo::name},
    {{"checkpoint", "TEXT NOT NULL", "folder as it was named"}, &RunInfo::checkpoint},
    {{"checkpoint_digest", "TEXT NOT NULL", "SHA-256 of the checkpoint", &rule::digest},
     &RunInfo::checkpoint_digest},
    {{"architecture", "TEXT NOT NULL", "model_type of the backbone"}, &RunInfo::architecture},
    {{"method", "TEXT NOT NULL", "vanilla, ponderlm, ..."}, &RunInfo::method},
    {{"depth_mixing", "TEXT NOT NULL", "none, depth_attention, ..."}, &RunInfo::depth_mixing},
    {{"policy", "TEXT NOT NULL", "what decides halting: learned, full, ...", nullptr, "", Text::document},
     &RunInfo::policy},
    {{"scoring", "TEXT NOT NULL", "exact, jacobi:3"}, &RunInfo::scoring},
    {{"device", "TEXT NOT NULL", "cpu, cuda:0 with the name of the GPU"}, &RunInfo::device},
    {{"dtype", "TEXT NOT NULL", "float32, tf32, bfloat16, float16"}, &RunInfo::dtype},
    {{"record_level", "TEXT NOT NULL", "scalars, basic, steps"}, &RunInfo::record_level},
    {{"text_source", "TEXT NOT NULL", "file, prompt or ids", nullptr, "", Text::document},
     &RunInfo::text_source},
    {{"text_digest", "TEXT NOT NULL", "SHA-256 of the text, or of the ids as little-endian int32",
      &rule::digest},
     &RunInfo::text_digest},
    {{"tokenizer_digest", "TEXT NOT NULL", "SHA-256 of the tokenizer's content; empty without one",
      &rule::digest},
     &RunInfo::tokenizer_digest},
    {{"tokenizer", "INTEGER NOT NULL", "key into vocabulary; runs of one tokenizer share it", nullptr, "",
      Text::line, false},
     &RunInfo::tokenizer},
    {{"versions", "TEXT NOT NULL", "JSON: programs and libraries", &rule::json_object, "", Text::document,
      false},
     &RunInfo::versions},
    {{"config", "TEXT NOT NULL", "config.json as read", &rule::json_object_or_empty, "", Text::document,
      false},
     &RunInfo::config},
    {{"notices", "TEXT NOT NULL", "JSON array of sentences", &rule::json_texts, "", Text::document, false},
     &RunInfo::notices},
    {{"seed", "INTEGER NOT NULL", "64 bits, shown signed"}, &RunInfo::seed},
    {{"max_steps", "INTEGER NOT NULL", "K: the last step that a token can reach", &rule::count},
     &RunInfo::max_steps},
    {{"layers", "INTEGER NOT NULL", "blocks of the backbone", &rule::count}, &RunInfo::layers},
    {{"vocab_size", "INTEGER NOT NULL", "rows of the output head", &rule::positive}, &RunInfo::vocab_size},
    {{"context", "INTEGER NOT NULL", "tokens a window", &rule::count}, &RunInfo::context},
    {{"stride", "INTEGER NOT NULL", "tokens from window to window", &rule::count}, &RunInfo::stride},
    {{"started", "TEXT NOT NULL", "ISO 8601, UTC", &rule::time}, &RunInfo::started},
    {{"seconds", "REAL NOT NULL", "wall time so far", &rule::count}, &RunInfo::seconds},
    {{"complete", "INTEGER NOT NULL", "1: ended as planned; 0: partial, or still recording", &rule::flag},
     &RunInfo::complete},
    {{"sequences", "INTEGER NOT NULL", "begun so far"}, &RunInfo::sequences},
    {{"tokens", "INTEGER NOT NULL", "of all sequences"}, &RunInfo::tokens},
    {{"scored_tokens", "INTEGER NOT NULL", "tokens with a target, that is with an nll"},
     &RunInfo::scored_tokens},
    {{"nll_sum", "REAL NOT NULL", "over the scored tokens", nullptr, "nats"}, &RunInfo::nll_sum},
    {{"steps_sum", "REAL NOT NULL", "over the scored tokens"}, &RunInfo::steps_sum},
    {{"flops_sum", "REAL NOT NULL", "over all tokens; 0: not known"}, &RunInfo::flops_sum},
    {{"scored_bytes", "INTEGER NOT NULL", "bytes of text under the scored targets"}, &RunInfo::scored_bytes},
    {{"flops_model", "TEXT NOT NULL DEFAULT ''",
      "JSON: what slots, keys and decisions cost; empty if unknown", &rule::json_object_or_empty, "",
      Text::document, false},
     &RunInfo::flops_model},
    {{"step_unit", "TEXT NOT NULL DEFAULT 'step'", "step, or layer where steps are blocks of the stack",
      &rule::step_or_layer},
     &RunInfo::step_unit},
    {{"choices", "TEXT NOT NULL DEFAULT ''",
      "JSON: kv, initial_state, threshold, rule, where the run has them; empty if unknown", nullptr, "",
      Text::document},
     &RunInfo::choices},
};
constexpr Field<SequenceInfo> sequence_columns[] = {
    {{"id", "INTEGER PRIMARY KEY", "unique in the file", &rule::sequence_id, "", Text::line, false},
     &SequenceInfo::id},
    {{"run", "INTEGER NOT NULL", "run.id"}, &SequenceInfo::run},
    {{"number", "INTEGER NOT NULL", "in its run, from 0"}, &SequenceInfo::number},
    {{"title", "TEXT NOT NULL", "file name, or the beginning of the prompt"}, &SequenceInfo::title},
    {{"text_bytes", "INTEGER NOT NULL", "length of the text; 0 for ids only", &rule::count},
     &SequenceInfo::text_bytes},
    {{"tokens", "INTEGER NOT NULL", "recorded so far", &rule::count}, &SequenceInfo::tokens},
    {{"scored_tokens", "INTEGER NOT NULL", "tokens with a target"}, &SequenceInfo::scored_tokens},
    {{"nll_sum", "REAL NOT NULL", "over the scored tokens", nullptr, "nats"}, &SequenceInfo::nll_sum},
    {{"steps_sum", "REAL NOT NULL", "over the scored tokens"}, &SequenceInfo::steps_sum},
    {{"flops_sum", "REAL NOT NULL", "over all tokens; 0: not known"}, &SequenceInfo::flops_sum},
    {{"scored_bytes", "INTEGER NOT NULL", "bytes of text under the scored targets"},
     &SequenceInfo::scored_bytes},
    {{"complete", "INTEGER NOT NULL", "1: all of its tokens are here"}, &SequenceInfo::complete},
    {{"group", "TEXT DEFAULT NULL", "what it belongs to with others: an author, a source; NULL: nothing"},
     &SequenceInfo::group},
    {{"text_crc32", "INTEGER DEFAULT NULL", "CRC-32 of its text; NULL: not kept", nullptr, "", Text::line,
      false},
     &SequenceInfo::text_crc32},
    {{"tokens_crc32", "INTEGER DEFAULT NULL", "CRC-32 of its rows in token_row; NULL: not kept", nullptr, "",
      Text::line, false},
     &SequenceInfo::tokens_crc32},
    {{"joined_number", "INTEGER DEFAULT NULL", "of a shard: number in the run of all shards; NULL: number"},
     &SequenceInfo::joined_number},
};
constexpr Column text_columns[] = {
    {"row", "INTEGER PRIMARY KEY", "sequence.id * 4294967296 + number of the piece, from 0"},
    {"bytes", "BLOB NOT NULL", "4000 bytes of UTF-8, the last piece fewer; may end inside a character"},
};
constexpr Column label_columns[] = {
    {"sequence", "INTEGER NOT NULL", "sequence.id"},
    {"text_begin", "INTEGER NOT NULL", "first byte in the sequence's text"},
    {"text_end", "INTEGER NOT NULL", "byte after the last; labels of a sequence do not overlap"},
    {"class", "TEXT NOT NULL", "what somebody called this part of the text"},
};
constexpr Field<SignalInfo> signal_columns[] = {
    {{"id", "INTEGER PRIMARY KEY", "unique in the file"}},
    {{"run", "INTEGER NOT NULL", "run.id"}},
    {{"name", "TEXT NOT NULL", "nll, kl_previous_current, candidate_ids, ...", &rule::plain_name},
     &SignalInfo::name},
    {{"axes", "TEXT NOT NULL", "JSON array; the first is always token", &rule::axes}, &SignalInfo::axes},
    {{"unit", "TEXT NOT NULL", "nats, probability, ...; empty for none"}, &SignalInfo::unit},
    {{"title", "TEXT NOT NULL", "for people"}, &SignalInfo::title},
    {{"description", "TEXT NOT NULL", "one sentence"}, &SignalInfo::description},
    {{"dtype", "TEXT NOT NULL", "of all its chunks: F32, F16, I32, ...", &rule::dtype}, &SignalInfo::dtype},
    {{"storage", "TEXT NOT NULL",
      "plain, compressed or trimmed (without the zeros at the end of the last axis)", &rule::storage},
     &SignalInfo::storage},
    {{"every_step", "INTEGER NOT NULL",
      "1: a number at steps that did not run, too; 0: NaN there, or -1 among whole numbers", &rule::flag},
     &SignalInfo::every_step},
    {{"of_target", "INTEGER NOT NULL",
      "1: compares the prediction with the next token; without one NaN, or 0 among whole numbers",
      &rule::flag},
     &SignalInfo::of_target},
};
constexpr Column chunk_columns[] = {
    {"id", "INTEGER PRIMARY KEY", ""},
    {"sequence", "INTEGER NOT NULL", "sequence.id"},
    {"signal", "INTEGER NOT NULL", "signal.id"},
    {"first_token", "INTEGER NOT NULL", "position of the first token in this chunk"},
    {"tokens", "INTEGER NOT NULL", "tokens in this chunk"},
    {"dtype", "TEXT NOT NULL", "F32, F16, I32, ...; +zstd behind it: compressed"},
    {"shape", "TEXT NOT NULL", "JSON array, [tokens, ...] along the signal's axes"},
    {"data", "BLOB NOT NULL", "row-major, little-endian"},
    {"crc32", "INTEGER DEFAULT NULL", "CRC-32 of data; NULL: not kept"},
};
constexpr Column vocabulary_columns[] = {
    {"tokenizer", "INTEGER NOT NULL", "run.tokenizer"},
    {"id", "INTEGER NOT NULL", "token id"},
    {"bytes", "BLOB NOT NULL", "what the token stands for; may be part of a character"},
    {"crc32", "INTEGER DEFAULT NULL", "CRC-32 of bytes; NULL: not kept"},
};
constexpr Field<FaultInfo> fault_columns[] = {
    {{"id", "INTEGER PRIMARY KEY", ""}},
    {{"run", "INTEGER NOT NULL", "run.id"}, &FaultInfo::run},
    {{"sequence", "INTEGER", "number in the run, or NULL"}, &FaultInfo::sequence},
    {{"time", "TEXT NOT NULL", "ISO 8601, UTC"}, &FaultInfo::time},
    {{"message", "TEXT NOT NULL", "one sentence", nullptr, "", Text::document}, &FaultInfo::message},
};
constexpr Field<TrainingInfo> training_columns[] = {
    {{"id", "INTEGER PRIMARY KEY", "from 1"}, &TrainingInfo::id},
    {{"name", "TEXT NOT NULL UNIQUE", "of the recipe"}, &TrainingInfo::name},
    {{"description", "TEXT NOT NULL", "of the recipe; may be empty", nullptr, "", Text::document, false},
     &TrainingInfo::description},
    {{"architecture", "TEXT NOT NULL", "model_type of the backbone"}, &TrainingInfo::architecture},
    {{"method", "TEXT NOT NULL", "vanilla, ponderlm, ..."}, &TrainingInfo::method},
    {{"depth_mixing", "TEXT NOT NULL", "none, depth_attention, ..."}, &TrainingInfo::depth_mixing},
    {{"recipe", "TEXT NOT NULL", "JSON: the recipe with its defaults", nullptr, "", Text::document, false},
     &TrainingInfo::recipe},
    {{"config", "TEXT NOT NULL", "config.json of the model", nullptr, "", Text::document, false},
     &TrainingInfo::config},
    {{"device", "TEXT NOT NULL", "cpu, cuda:0"}, &TrainingInfo::device},
    {{"precision", "TEXT NOT NULL", "of the products: float32, bfloat16"}, &TrainingInfo::precision},
    {{"versions", "TEXT NOT NULL", "JSON: programs and libraries", nullptr, "", Text::document, false},
     &TrainingInfo::versions},
    {{"parameters", "INTEGER NOT NULL", "elements of the weights, a tied table once"},
     &TrainingInfo::parameters},
    {{"max_steps", "INTEGER NOT NULL", "K: the last step of pondering that a token can reach"},
     &TrainingInfo::max_steps},
    {{"planned_steps", "INTEGER NOT NULL", "of the optimiser"}, &TrainingInfo::planned_steps},
    {{"planned_tokens", "INTEGER NOT NULL", "to be trained on"}, &TrainingInfo::planned_tokens},
    {{"started", "TEXT NOT NULL", "ISO 8601, UTC"}, &TrainingInfo::started},
    {{"step", "INTEGER NOT NULL", "of the last point"}, &TrainingInfo::step},
    {{"tokens", "INTEGER NOT NULL", "trained on up to there"}, &TrainingInfo::tokens},
    {{"seconds", "REAL NOT NULL", "of training up to there, interruptions not counted"},
     &TrainingInfo::seconds},
    {{"complete", "INTEGER NOT NULL", "1: ended as planned; 0: stopped, or still training"},
     &TrainingInfo::complete},
    {{"fault", "TEXT NOT NULL", "what ended it before its time, one sentence; else empty", nullptr, "",
      Text::document},
     &TrainingInfo::fault},
};
constexpr Field<TrainingQuantity> training_quantity_columns[] = {
    {{"training", "INTEGER NOT NULL", "training.id"}},
    {{"name", "TEXT NOT NULL", "loss, held_out_nll, held_out_gate, ..."}, &TrainingQuantity::name},
    {{"axis", "TEXT NOT NULL", "what place counts: step of pondering, ...; empty: there is one value"},
     &TrainingQuantity::axis},
    {{"unit", "TEXT NOT NULL", "nats, ...; empty for none"}, &TrainingQuantity::unit},
    {{"title", "TEXT NOT NULL", "for people"}, &TrainingQuantity::title},
    {{"description", "TEXT NOT NULL", "one sentence"}, &TrainingQuantity::description},
};
constexpr Column training_point_columns[] = {
    {"training", "INTEGER NOT NULL", "training.id"},
    {"step", "INTEGER NOT NULL", "steps of the optimiser done"},
    {"quantity", "TEXT NOT NULL", "training_quantity.name"},
    {"place", "INTEGER NOT NULL", "on the quantity's axis, from 0; 0 without one"},
    {"tokens", "INTEGER NOT NULL", "trained on so far"},
    {"seconds", "REAL NOT NULL", "of training so far, interruptions not counted"},
    {"value", "REAL", "NULL: not a number"},
};
constexpr Column shard_columns[] = {
    {"run", "INTEGER PRIMARY KEY", "run.id"},
    {"rank", "INTEGER NOT NULL", "of the process that recorded this part, from 0"},
    {"world", "INTEGER NOT NULL", "processes that recorded the run together; 1: all of it is here"},
    {"batch", "INTEGER NOT NULL", "windows computed together"},
};

/// The columns of fields.
template <const auto& list>
constexpr auto plain = [] {
    std::array<Column, std::size(list)> columns{};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        columns[i] = list[i].column;
    }
    return columns;
}();

constexpr auto token_columns = std::apply(
    [](const auto&... field) {
        return std::array{Column{"row", "INTEGER PRIMARY KEY", "sequence.id * 4294967296 + position"},
                          field.column...};
    },
    token_fields);

const Table all_tables[] = {
    {"run", "A checkpoint, a method and a policy over a set of sequences.", plain<run_columns>, "", "STRICT"},
    {"sequence", "A text, or a prompt with what was generated.", plain<sequence_columns>,
     "UNIQUE (run, number)", "STRICT"},
    {"text", "The text of sequences, in pieces.", text_columns, "", "STRICT"},
    {"token_row", "Scalars of each token. The view token shows them with run, sequence and position.",
     token_columns, "", "STRICT"},
    {"signal", "What else was recorded: one row for each packed quantity of a run.", plain<signal_columns>,
     "UNIQUE (run, name)", "STRICT"},
    {"chunk", "The values of signals, packed for consecutive tokens of a sequence.", chunk_columns,
     "UNIQUE (sequence, signal, first_token)", "STRICT"},
    {"vocabulary", "What token ids stand for, candidates included.", vocabulary_columns,
     "PRIMARY KEY (tokenizer, id)", "STRICT, WITHOUT ROWID"},
    {"fault", "What went wrong while recording.", plain<fault_columns>, "", "STRICT"},
    {"label", "Classes that came with the text, by bytes.", label_columns,
     "PRIMARY KEY (sequence, text_begin)", "STRICT, WITHOUT ROWID"},
    {"training", "How a model was trained.", plain<training_columns>, "", "STRICT"},
    {"training_quantity", "What is known along a training.", plain<training_quantity_columns>,
     "PRIMARY KEY (training, name)", "STRICT, WITHOUT ROWID"},
    {"training_point", "The curves of trainings.", training_point_columns,
     "PRIMARY KEY (training, step, quantity, place)", "STRICT, WITHOUT ROWID"},
    {"shard", "How a run was dealt out to processes.", shard_columns, "", "STRICT"},
};

/// "t.id AS id, t.text_begin AS text_begin, ...": the columns of a token from \p first on.
std::string token_list(std::string_view first) {
    std::string list;
    each_token_field([&](const auto& field) {
        if (!list.empty() || field.column.name == first) {
            list +=
                (list.empty() ? "t." : ", t.") + std::string(field.column.name) + " AS " + field.column.name;
        }
    });
    return list;
}

// Column names are those of the tables; `sequence` is the number in the run wherever a view shows it.
const View all_views[] = {
    {"token", "Scalars of each token, with its place. Filters on run and sequence are fast.",
     "SELECT s.run AS run, s.number AS sequence, t.row & 4294967295 AS position,\n         " +
         token_list("id") +
         "\n    FROM sequence s CROSS JOIN token_row t\n"
         "      ON t.row >= s.id * 4294967296 AND t.row < (s.id + 1) * 4294967296"},
    {"token_text", "The same with the token's text (tokens over 4000 bytes are cut short).",
     "SELECT s.run AS run, s.number AS sequence, t.row & 4294967295 AS position,\n"
     "         coalesce(substr(a.bytes, t.text_begin % 4000 + 1, t.text_end - t.text_begin), '') ||\n"
     "         coalesce(substr(b.bytes, 1, max(0, t.text_begin % 4000 + t.text_end - t.text_begin - 4000)), "
     "'') "
     "AS text,\n         t.id AS id, " +
         token_list("nll") +
         "\n    FROM sequence s CROSS JOIN token_row t\n"
         "      ON t.row >= s.id * 4294967296 AND t.row < (s.id + 1) * 4294967296\n"
         "    LEFT JOIN text a ON a.row = s.id * 4294967296 + t.text_begin / 4000\n"
         "    LEFT JOIN text b ON b.row = s.id * 4294967296 + t.text_begin / 4000 + 1\n"
         "     AND t.text_begin % 4000 + t.text_end - t.text_begin > 4000"},
    {"target", "Each scored token with the nll, rank and steps of the prediction that it was the target of.",
     "SELECT t.run AS run, t.sequence AS sequence, t.position AS position, t.text AS text, t.id AS id, p.nll "
     "AS nll,\n"
     "         p.entropy AS entropy, p.max_probability AS max_probability, p.rank AS rank, p.steps AS steps\n"
     "    FROM token_text t JOIN sequence s ON s.run = t.run AND s.number = t.sequence\n"
     "    JOIN token_row p ON p.row = s.id * 4294967296 + t.position - 1\n"
     "   WHERE t.position > 0 AND p.nll IS NOT NULL"},
    {"run_summary", "One line a run.",
     "SELECT id, name, method, policy, scoring, dtype, complete, sequences, tokens, scored_tokens,\n"
     "         nll_sum / nullif(scored_tokens, 0) AS mean_nll, exp(nll_sum / nullif(scored_tokens, 0)) AS "
     "perplexity,\n"
     "         nll_sum / 0.6931471805599453 / nullif(scored_bytes, 0) AS bits_per_byte,\n"
     "         steps_sum / nullif(scored_tokens, 0) AS mean_steps, nullif(flops_sum, 0) / tokens AS "
     "flops_per_token,\n"
     "         tokens / nullif(seconds, 0) AS tokens_per_second\n"
     "    FROM run"},
    {"sequence_summary", "One line a sequence.",
     "SELECT run, number AS sequence, title, complete, tokens, scored_tokens,\n"
     "         nll_sum / nullif(scored_tokens, 0) AS mean_nll, exp(nll_sum / nullif(scored_tokens, 0)) AS "
     "perplexity,\n"
     "         nll_sum / 0.6931471805599453 / nullif(scored_bytes, 0) AS bits_per_byte,\n"
     "         steps_sum / nullif(scored_tokens, 0) AS mean_steps, \"group\"\n"
     "    FROM sequence"},
    {"sequence_text", "The whole text of each sequence.",
     "SELECT s.run AS run, s.number AS sequence, s.title AS title,\n"
     "         coalesce((SELECT group_concat(bytes, '') FROM\n"
     "                    (SELECT bytes FROM text WHERE row >= s.id * 4294967296 AND row < (s.id + 1) * "
     "4294967296 ORDER BY row)), '') AS text\n"
     "    FROM sequence s"},
    {"signal_chunk", "The chunks of signals, with their place and name; data is the packed array.",
     "SELECT s.run AS run, s.number AS sequence, g.name AS signal, c.first_token AS first_token, c.tokens AS "
     "tokens,\n"
     "         c.dtype AS dtype, c.shape AS shape, length(c.data) AS bytes, c.data AS data\n"
     "    FROM sequence s JOIN chunk c ON c.sequence = s.id JOIN signal g ON g.id = c.signal"},
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

std::span<const Table> tables() {
    return all_tables;
}

std::span<const View> views() {
    return all_views;
}

} // namespace ponderscope::schema
