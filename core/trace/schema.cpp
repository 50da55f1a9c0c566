// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/schema.h"

#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/trace/database.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>

namespace ponderscope {
namespace schema {
namespace {

constexpr Column run_columns[] = {
    {"id", "INTEGER PRIMARY KEY", "from 1"},
    {"name", "TEXT NOT NULL UNIQUE", "what follows # in TRACE.ponder#RUN"},
    {"checkpoint", "TEXT NOT NULL", "folder as it was named"},
    {"checkpoint_digest", "TEXT NOT NULL", "SHA-256 of the checkpoint"},
    {"architecture", "TEXT NOT NULL", "model_type of the backbone"},
    {"method", "TEXT NOT NULL", "vanilla, ponderlm, ..."},
    {"depth_mixing", "TEXT NOT NULL", "none, depth_attention, ..."},
    {"policy", "TEXT NOT NULL", "what decides halting: learned, full, ..."},
    {"scoring", "TEXT NOT NULL", "exact, jacobi:3"},
    {"device", "TEXT NOT NULL", "cpu, cuda:0 with the name of the GPU"},
    {"dtype", "TEXT NOT NULL", "float32, tf32, bfloat16, float16"},
    {"record_level", "TEXT NOT NULL", "scalars, basic, steps"},
    {"text_source", "TEXT NOT NULL", "file, prompt or ids"},
    {"text_digest", "TEXT NOT NULL", "SHA-256 of the text, or of the ids as little-endian int32"},
    {"tokenizer_digest", "TEXT NOT NULL", "SHA-256 of the tokenizer's content; empty without one"},
    {"tokenizer", "INTEGER NOT NULL", "key into vocabulary; runs of one tokenizer share it"},
    {"versions", "TEXT NOT NULL", "JSON: programs and libraries"},
    {"config", "TEXT NOT NULL", "config.json as read"},
    {"notices", "TEXT NOT NULL", "JSON array of sentences"},
    {"seed", "INTEGER NOT NULL", "64 bits, shown signed"},
    {"max_steps", "INTEGER NOT NULL", "K: the last step that a token can reach"},
    {"layers", "INTEGER NOT NULL", "blocks of the backbone"},
    {"vocab_size", "INTEGER NOT NULL", "rows of the output head"},
    {"context", "INTEGER NOT NULL", "tokens a window"},
    {"stride", "INTEGER NOT NULL", "tokens from window to window"},
    {"started", "TEXT NOT NULL", "ISO 8601, UTC"},
    {"seconds", "REAL NOT NULL", "wall time so far"},
    {"complete", "INTEGER NOT NULL", "1: ended as planned; 0: partial, or still recording"},
    {"sequences", "INTEGER NOT NULL", "begun so far"},
    {"tokens", "INTEGER NOT NULL", "of all sequences"},
    {"scored_tokens", "INTEGER NOT NULL", "tokens with a target, that is with an nll"},
    {"nll_sum", "REAL NOT NULL", "nats, over the scored tokens"},
    {"steps_sum", "REAL NOT NULL", "over the scored tokens"},
    {"flops_sum", "REAL NOT NULL", "over all tokens; 0: not known"},
    {"scored_bytes", "INTEGER NOT NULL", "bytes of text under the scored targets"},
    {"flops_model", "TEXT NOT NULL DEFAULT ''",
     "JSON: what slots, keys and decisions cost; empty if unknown"},
    {"step_unit", "TEXT NOT NULL DEFAULT 'step'", "step, or layer where steps are blocks of the stack"},
    {"choices", "TEXT NOT NULL DEFAULT ''",
     "JSON: kv, initial_state, threshold, rule, where the run has them; empty if unknown"},
    {"training", "INTEGER NOT NULL DEFAULT 0", "training.id of the training that recorded it; 0: none"},
    {"training_step", "INTEGER NOT NULL DEFAULT 0", "steps of that training done then"},
};
constexpr Column sequence_columns[] = {
    {"id", "INTEGER PRIMARY KEY", "unique in the file"},
    {"run", "INTEGER NOT NULL", "run.id"},
    {"number", "INTEGER NOT NULL", "in its run, from 0"},
    {"title", "TEXT NOT NULL", "file name, or the beginning of the prompt"},
    {"text_bytes", "INTEGER NOT NULL", "length of the text; 0 for ids only"},
    {"tokens", "INTEGER NOT NULL", "recorded so far"},
    {"scored_tokens", "INTEGER NOT NULL", "tokens with a target"},
    {"nll_sum", "REAL NOT NULL", "nats, over the scored tokens"},
    {"steps_sum", "REAL NOT NULL", "over the scored tokens"},
    {"flops_sum", "REAL NOT NULL", "over all tokens; 0: not known"},
    {"scored_bytes", "INTEGER NOT NULL", "bytes of text under the scored targets"},
    {"complete", "INTEGER NOT NULL", "1: all of its tokens are here"},
    {"group", "TEXT DEFAULT NULL", "what it belongs to with others: an author, a source; NULL: nothing"},
    {"text_crc32", "INTEGER DEFAULT NULL", "CRC-32 of its text; NULL: not kept"},
    {"tokens_crc32", "INTEGER DEFAULT NULL", "CRC-32 of its rows in token_row; NULL: not kept"},
    {"joined_number", "INTEGER DEFAULT NULL", "of a shard: number in the run of all shards; NULL: number"},
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
constexpr Column token_columns[] = {
    {"row", "INTEGER PRIMARY KEY", "sequence.id * 4294967296 + position"},
    {"id", "INTEGER NOT NULL", "token id"},
    {"text_begin", "INTEGER NOT NULL", "first byte in the sequence's text"},
    {"text_end", "INTEGER NOT NULL", "byte after the last"},
    {"nll", "REAL", "nats; of the NEXT token, predicted here; NULL: not scored"},
    {"entropy", "REAL", "nats; of the prediction made here; NULL: not read out"},
    {"max_probability", "REAL", "of the prediction made here; NULL: not read out"},
    {"rank", "INTEGER NOT NULL", "of the next token: 1 + the number of larger logits; 0: not scored"},
    {"steps", "INTEGER NOT NULL", "last step that ran here"},
    {"flops", "INTEGER NOT NULL",
     "floating-point operations of matrix products spent here; 0 in a whole run: not known"},
};
constexpr Column signal_columns[] = {
    {"id", "INTEGER PRIMARY KEY", "unique in the file"},
    {"run", "INTEGER NOT NULL", "run.id"},
    {"name", "TEXT NOT NULL", "nll, kl_previous_current, candidate_ids, ..."},
    {"axes", "TEXT NOT NULL", "JSON array; the first is always token"},
    {"unit", "TEXT NOT NULL", "nats, probability, ...; empty for none"},
    {"title", "TEXT NOT NULL", "for people"},
    {"description", "TEXT NOT NULL", "one sentence"},
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
constexpr Column fault_columns[] = {
    {"id", "INTEGER PRIMARY KEY", ""},
    {"run", "INTEGER NOT NULL", "run.id"},
    {"sequence", "INTEGER", "number in the run, or NULL"},
    {"time", "TEXT NOT NULL", "ISO 8601, UTC"},
    {"message", "TEXT NOT NULL", "one sentence"},
};
constexpr Column training_columns[] = {
    {"id", "INTEGER PRIMARY KEY", "from 1"},
    {"name", "TEXT NOT NULL UNIQUE", "of the recipe"},
    {"description", "TEXT NOT NULL", "of the recipe; may be empty"},
    {"architecture", "TEXT NOT NULL", "model_type of the backbone"},
    {"method", "TEXT NOT NULL", "vanilla, ponderlm, ..."},
    {"depth_mixing", "TEXT NOT NULL", "none, depth_attention, ..."},
    {"recipe", "TEXT NOT NULL", "JSON: the recipe with its defaults"},
    {"config", "TEXT NOT NULL", "config.json of the model"},
    {"device", "TEXT NOT NULL", "cpu, cuda:0"},
    {"precision", "TEXT NOT NULL", "of the products: float32, bfloat16"},
    {"versions", "TEXT NOT NULL", "JSON: programs and libraries"},
    {"parameters", "INTEGER NOT NULL", "elements of the weights, a tied table once"},
    {"max_steps", "INTEGER NOT NULL", "K: the last step of pondering that a token can reach"},
    {"planned_steps", "INTEGER NOT NULL", "of the optimiser"},
    {"planned_tokens", "INTEGER NOT NULL", "to be trained on"},
    {"started", "TEXT NOT NULL", "ISO 8601, UTC"},
    {"step", "INTEGER NOT NULL", "of the last point"},
    {"tokens", "INTEGER NOT NULL", "trained on up to there"},
    {"seconds", "REAL NOT NULL", "of training up to there, interruptions not counted"},
    {"complete", "INTEGER NOT NULL", "1: ended as planned; 0: stopped, or still training"},
    {"fault", "TEXT NOT NULL", "what ended it before its time, one sentence; else empty"},
};
constexpr Column training_quantity_columns[] = {
    {"training", "INTEGER NOT NULL", "training.id"},
    {"name", "TEXT NOT NULL", "loss, held_out_nll, held_out_gate, ..."},
    {"axis", "TEXT NOT NULL", "what place counts: step of pondering, ...; empty: there is one value"},
    {"unit", "TEXT NOT NULL", "nats, ...; empty for none"},
    {"title", "TEXT NOT NULL", "for people"},
    {"description", "TEXT NOT NULL", "one sentence"},
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
constexpr Column signal_sum_columns[] = {
    {"signal", "INTEGER PRIMARY KEY", "signal.id, of a name that ends in .sum"},
    {"shape", "TEXT NOT NULL", "JSON array, along the signal's axes behind token"},
    {"data", "BLOB NOT NULL",
     "int64, little-endian: values that are numbers, their sum in 2^-24, that of their squares in 2^-28"},
    {"crc32", "INTEGER NOT NULL", "CRC-32 of data"},
};

constexpr Table all_tables[] = {
    {"run", "A checkpoint, a method and a policy over a set of sequences.", run_columns, "", "STRICT"},
    {"sequence", "A text, or a prompt with what was generated.", sequence_columns, "UNIQUE (run, number)",
     "STRICT"},
    {"text", "The text of sequences, in pieces.", text_columns, "", "STRICT"},
    {"token_row", "Scalars of each token. The view token shows them with run, sequence and position.",
     token_columns, "", "STRICT"},
    {"signal", "What else was recorded: one row for each packed quantity of a run.", signal_columns,
     "UNIQUE (run, name)", "STRICT"},
    {"chunk", "The values of signals, packed for consecutive tokens of a sequence.", chunk_columns,
     "UNIQUE (sequence, signal, first_token)", "STRICT"},
    {"vocabulary", "What token ids stand for, candidates included.", vocabulary_columns,
     "PRIMARY KEY (tokenizer, id)", "STRICT, WITHOUT ROWID"},
    {"fault", "What went wrong while recording.", fault_columns, "", "STRICT"},
    {"label", "Classes that came with the text, by bytes.", label_columns,
     "PRIMARY KEY (sequence, text_begin)", "STRICT, WITHOUT ROWID"},
    {"training", "How a model was trained.", training_columns, "", "STRICT"},
    {"training_quantity", "What is known along a training.", training_quantity_columns,
     "PRIMARY KEY (training, name)", "STRICT, WITHOUT ROWID"},
    {"training_point", "The curves of trainings.", training_point_columns,
     "PRIMARY KEY (training, step, quantity, place)", "STRICT, WITHOUT ROWID"},
    {"shard", "How a run was dealt out to processes.", shard_columns, "", "STRICT"},
    {"signal_sum", "What the values of a signal add up to over the finished sequences of a run.",
     signal_sum_columns, "", "STRICT"},
};

// Column names are those of the tables; `sequence` is the number in the run wherever a view shows it.
constexpr View all_views[] = {
    {"token", "Scalars of each token, with its place. Filters on run and sequence are fast.",
     "SELECT s.run AS run, s.number AS sequence, t.row & 4294967295 AS position, t.id AS id, t.text_begin AS "
     "text_begin,\n"
     "         t.text_end AS text_end, t.nll AS nll, t.entropy AS entropy, t.max_probability AS "
     "max_probability,\n"
     "         t.rank AS rank, t.steps AS steps, t.flops AS flops\n"
     "    FROM sequence s CROSS JOIN token_row t\n"
     "      ON t.row >= s.id * 4294967296 AND t.row < (s.id + 1) * 4294967296"},
    {"token_text", "The same with the token's text (tokens over 4000 bytes are cut short).",
     "SELECT s.run AS run, s.number AS sequence, t.row & 4294967295 AS position,\n"
     "         coalesce(substr(a.bytes, t.text_begin % 4000 + 1, t.text_end - t.text_begin), '') ||\n"
     "         coalesce(substr(b.bytes, 1, max(0, t.text_begin % 4000 + t.text_end - t.text_begin - 4000)), "
     "'') AS text,\n"
     "         t.id AS id, t.nll AS nll, t.entropy AS entropy, t.max_probability AS max_probability, t.rank "
     "AS rank,\n"
     "         t.steps AS steps, t.flops AS flops\n"
     "    FROM sequence s CROSS JOIN token_row t\n"
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

bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= 100 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '.' || c == '-';
    });
}

std::string name_in_sql(const Column& column) {
    return std::string_view(column.name) == "group" ? "\"group\"" : column.name;
}

std::span<const Table> tables() {
    return all_tables;
}

std::span<const View> views() {
    return all_views;
}

std::string create_statement(const Table& table) {
    std::string sql = std::string("CREATE TABLE ") + table.name + " ( -- " + table.meaning + "\n";
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        const Column& column = table.columns[i];
        const bool last = i + 1 == table.columns.size() && *table.constraints == '\0';
        sql += "  " + name_in_sql(column) + " " + column.type + (last ? "" : ",");
        if (*column.meaning != '\0') {
            sql += std::string(" -- ") + column.meaning;
        }
        sql += "\n";
    }
    if (*table.constraints != '\0') {
        sql += std::string("  ") + table.constraints + "\n";
    }
    return sql + ") " + table.options + ";\n";
}

std::string create_statements() {
    std::string sql;
    for (const Table& table : all_tables) {
        sql += create_statement(table);
    }
    for (const View& view : all_views) {
        sql +=
            std::string("CREATE VIEW ") + view.name + " AS -- " + view.meaning + "\n  " + view.select + ";\n";
    }
    return sql;
}

} // namespace schema

namespace {

std::uint32_t big_endian(const char* bytes) {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
        value = value << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return value;
}

} // namespace

void check_trace_header(const std::filesystem::path& path) {
    check_header(path, {"a trace", schema::application_id, schema::version,
                        "choose a .ponder file that ponderscope record made"});
}

void check_plain_file(const std::filesystem::path& path, const std::string& what,
                      const std::string& make_one) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
        throw InputError(path, what, "no such file", "check the name");
    }
    if (status.type() == fs::file_type::directory) {
        throw InputError(path, what, "a folder", make_one);
    }
    if (error) {
        throw InputError(path, what, "something that cannot be looked at (" + error.message() + ")",
                         "check the permissions of the folders above it");
    }
    if (status.type() != fs::file_type::regular) {
        throw InputError(path, what, "something that is no plain file", make_one);
    }
    if (fs::file_size(path, error) == 0 && !error) {
        throw InputError(path, what, "an empty file", make_one);
    }
}

void check_header(const std::filesystem::path& path, const DatabaseKind& kind) {
    const std::string what = kind.what;
    const std::string make_one = kind.otherwise;
    if (!remote::is_remote(path)) { // the other side says the same of its files
        check_plain_file(path, what, make_one);
    }
    // SQLite's own header: magic at 0, user_version at 60, application_id at 68, both big-endian.
    std::array<char, 100> header{};
    try {
        Database(path, Database::Access::read).read_file(0, std::as_writable_bytes(std::span(header)));
    } catch (const SqliteFailure& failure) {
        const int reason = failure.system_error();
        throw InputError(path, what + " that can be read",
                         std::string("a file that cannot (") +
                             (reason != 0 ? std::strerror(reason) : failure.what()) + ")",
                         "check its permissions");
    }
    // Of a file that ends within its header the rest is read as zeros; byte 18 is the format's version, 1
    // or 2.
    if (std::string_view(header.data(), 16) != std::string_view("SQLite format 3\0", 16) || header[18] == 0) {
        throw InputError(path, what, "a file of another kind", make_one);
    }
    if (big_endian(header.data() + 68) != static_cast<std::uint32_t>(kind.application_id)) {
        throw InputError(path, what, "an SQLite database of another program", make_one);
    }
    const auto version = static_cast<std::int32_t>(big_endian(header.data() + 60));
    if (version != kind.version) {
        throw InputError(path, what + " of version " + std::to_string(kind.version),
                         "version " + std::to_string(version),
                         "open it with the Ponderscope that wrote it, or make it again");
    }
}

void check_trace_tables(Database& database, const std::filesystem::path& path) {
    check_tables(database, path, schema::tables());
}

void check_tables(Database& database, const std::filesystem::path& path,
                  std::span<const schema::Table> tables) {
    const std::string remedy = "the file was changed or damaged; take it from its source again";
    Statement find =
        database.prepare("SELECT type, coalesce(sql, '') FROM sqlite_schema WHERE lower(name) = ?");
    for (const schema::Table& table : tables) {
        const std::string expected = std::string("a table named ") + table.name;
        find.bind(1, std::string_view(table.name));
        if (!find.step()) {
            find.reset();
            throw InputError(path, expected, "none", remedy);
        }
        const std::string type = find.text(0);
        const std::string sql = find.text(1);
        const bool another = find.step();
        find.reset();
        if (type != "table" || another) {
            throw InputError(path, expected,
                             another ? "two entries of that name" : "an entry of that name of type " + type,
                             remedy);
        }
        // A virtual table would run a module's code on what a stranger wrote.
        if (!sql.starts_with("CREATE TABLE ")) {
            throw InputError(path, expected, "a virtual table of that name", remedy);
        }
        std::set<std::string, std::less<>> plain;
        Statement columns = database.prepare("SELECT name, hidden FROM pragma_table_xinfo(?)");
        columns.bind(1, std::string_view(table.name));
        while (columns.step()) {
            if (columns.integer(1) == 0) { // not computed by an expression in the file
                plain.insert(columns.text(0));
            }
        }
        for (const schema::Column& column : table.columns) {
            if (!plain.contains(column.name)) {
                throw InputError(path, std::string("a plain column ") + table.name + "." + column.name,
                                 "none", remedy);
            }
        }
    }
}

} // namespace ponderscope
