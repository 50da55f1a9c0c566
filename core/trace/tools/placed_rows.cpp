// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/placed_rows.h"

#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/words.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace ponderscope {
namespace {

/// The columns that locate a row. If a table has both bytes and a token's position, the bytes are used.
struct PlaceColumns {
    inline static const std::vector<std::string> token_names{"token", "token_index", "position"};
    bool by_bytes;
    std::optional<std::size_t> document, begin, end;
    std::vector<std::string> header;

    explicit PlaceColumns(const std::vector<std::string>& columns)
        : by_bytes(find(columns, {"begin", "end"}).has_value()),
          document(find(columns, {"document", "sequence"})),
          begin(find(columns, by_bytes ? std::vector<std::string>{"begin"} : token_names)),
          end(find(columns, {"end"})),
          header(columns) {}

    /// Whether the column locates rows, or is ignored because bytes locate them.
    [[nodiscard]] bool has(std::size_t column) const {
        return document == column || begin == column || end == column ||
               (by_bytes &&
                std::find(token_names.begin(), token_names.end(), header[column]) != token_names.end());
    }
    static std::optional<std::size_t> find(const std::vector<std::string>& header,
                                           const std::vector<std::string>& names) {
        const auto found = std::find_first_of(header.begin(), header.end(), names.begin(), names.end());
        return found == header.end() ? std::nullopt
                                     : std::optional(static_cast<std::size_t>(found - header.begin()));
    }
};

} // namespace

PlacedTable PlacedTable::read(const std::filesystem::path& csv, const std::string& expected) {
    const std::string text = read_file(csv);
    PlacedTable table;
    table.file = csv;
    CsvRecords records(csv, text);
    std::vector<std::string> fields;
    if (!records.next(fields)) {
        throw InputError(ErrorId::annotation_table, csv, expected, "an empty file",
                         "write this header, then one row for each place");
    }
    const PlaceColumns places(fields);
    const std::size_t width = fields.size();
    std::vector<std::size_t> from;
    for (std::size_t i = 0; i < width; ++i) {
        if (!places.has(i)) {
            table.names.push_back(fields[i]);
            from.push_back(i);
        }
    }
    table.by_bytes = places.by_bytes;
    if (!places.begin || table.names.empty() || places.by_bytes != places.end.has_value()) {
        std::string found;
        for (const std::string& field : fields) {
            found += (found.empty() ? "" : ",") + field.substr(0, 40);
        }
        throw InputError(ErrorId::annotation_table, csv, expected, "\"" + found.substr(0, 200) + "\"",
                         "name the columns in the first line");
    }
    table.columns.resize(table.names.size());
    while (records.next(fields)) {
        const std::string where = csv.string() + ": line " + std::to_string(records.line());
        if (fields.size() == 1 && fields.front().empty()) {
            continue;
        }
        if (fields.size() != width) {
            throw InputError(ErrorId::text_line, where + " has " + std::to_string(fields.size()) +
                                                     " fields where the header has " + std::to_string(width) +
                                                     "; correct the line.");
        }
        const auto number = [&](std::size_t column) {
            const std::optional<std::uint64_t> value = parse_number<std::uint64_t>(fields[column]);
            if (!value || *value > std::numeric_limits<std::uint64_t>::max() / 2) {
                throw InputError(ErrorId::text_line, where + ": expected a whole number from 0, found \"" +
                                                         fields[column].substr(0, 40) +
                                                         "\"; correct the line.");
            }
            return *value;
        };
        PlacedRow row;
        row.line = records.line();
        row.document = places.document ? fields[*places.document] : "";
        row.number_first = places.document && places.header[*places.document] == "sequence";
        row.begin = number(*places.begin);
        row.end = places.end ? number(*places.end) : row.begin + 1;
        if (row.end <= row.begin) {
            throw InputError(ErrorId::text_line, where + ": expected an end above the begin " +
                                                     std::to_string(row.begin) + ", found " +
                                                     std::to_string(row.end) + "; correct the line.");
        }
        row.entry = static_cast<std::int32_t>(table.rows.size());
        table.rows.push_back(std::move(row));
        for (std::size_t i = 0; i < from.size(); ++i) {
            table.columns[i].push_back(std::move(fields[from[i]]));
        }
    }
    return table;
}

PlacedTokens::PlacedTokens(const TraceReader& trace, const RunInfo& run, const std::filesystem::path& file,
                           bool by_bytes, const std::vector<PlacedRow>& rows,
                           const std::vector<SequenceInfo>& sequences)
    : trace_(trace), run_(run), file_(file), by_bytes_(by_bytes) {
    if (by_bytes && run.scored_bytes == 0) {
        throw InputError(ErrorId::annotation_table,
                         trace.name_of(run) +
                             ": expected a run with its text for labels by bytes, found token ids only; "
                             "record it with --text, or label tokens (sequence,token,class).");
    }
    std::map<std::string, std::int64_t> numbers;
    std::map<std::string, std::int64_t> again; // second sequence with the same title
    for (const SequenceInfo& sequence : sequences) {
        if (!numbers.emplace(sequence.title, sequence.number).second) {
            again.emplace(sequence.title, sequence.number);
        }
    }
    for (const PlacedRow& row : rows) {
        std::optional<std::int64_t> number;
        const auto value = parse_number<std::uint64_t>(row.document);
        const bool is_number = value && *value < sequences.size();
        if (row.sequence >= 0) {
            number = row.sequence;
        } else if (row.number_first && is_number) {
            number = static_cast<std::int64_t>(*value);
        } else if (row.document.empty() && sequences.size() == 1) {
            number = 0;
        } else if (const auto found = numbers.find(row.document); found != numbers.end()) {
            if (const auto second = again.find(row.document); second != again.end()) {
                throw InputError(
                    ErrorId::trace_signal,
                    file.string() + ": line " + std::to_string(row.line) + " names the sequence \"" +
                        row.document + "\", and " + trace.name_of(run) +
                        " has several sequences with this title, " + std::to_string(found->second) + " and " +
                        std::to_string(second->second) + " among them; give the number instead.");
            }
            number = found->second;
        } else if (is_number) {
            number = static_cast<std::int64_t>(*value);
        }
        if (!number) {
            if (!run.complete) {
                continue; // the recording may not have reached it
            }
            throw InputError(ErrorId::trace_signal,
                             file.string() + ": line " + std::to_string(row.line) + " names the sequence \"" +
                                 row.document + "\", and " + trace.name_of(run) +
                                 " has no sequence with this title or number; it has " +
                                 std::to_string(sequences.size()) + " sequences, numbered from 0.");
        }
        rows_[*number].push_back(row);
    }
    for (auto& [number, list] : rows_) {
        std::stable_sort(list.begin(), list.end(),
                         [](const PlacedRow& a, const PlacedRow& b) { return a.begin < b.begin; });
        for (std::size_t i = 1; i < list.size(); ++i) {
            if (list[i].begin < list[i - 1].end) {
                throw InputError(ErrorId::text_line,
                                 file.string() + ": lines " + std::to_string(list[i - 1].line) + " and " +
                                     std::to_string(list[i].line) +
                                     " label the same place; give every place one class.");
            }
        }
    }
}

void PlacedTokens::check_length(const SequenceInfo& sequence) const {
    const auto found = rows_.find(sequence.number);
    if (!run_.complete || found == rows_.end()) {
        return;
    }
    const PlacedRow& last = found->second.back();
    const std::uint64_t length = by_bytes_ ? trace_.text(run_.id, sequence.number).size()
                                           : static_cast<std::uint64_t>(sequence.tokens);
    if (last.end > length) {
        throw InputError(
            ErrorId::trace_signal,
            file_.string() + ": line " + std::to_string(last.line) + " goes to " +
                (by_bytes_ ? "byte " + std::to_string(last.end) : "token " + std::to_string(last.begin)) +
                ", and sequence " + std::to_string(sequence.number) + " has " + std::to_string(length) +
                "; the labels belong to another text.");
    }
}

std::int32_t PlacedTokens::entry_of(const SequenceInfo& sequence, const TokenColumns& tokens,
                                    std::size_t i) const {
    const auto found = rows_.find(sequence.number);
    if (found == rows_.end() || i >= tokens.size()) {
        return -1;
    }
    const std::vector<PlacedRow>& rows = found->second;
    const std::uint64_t position = static_cast<std::uint64_t>(tokens.first) + i;
    const std::uint64_t begin = by_bytes_ ? tokens.begin[i] : position;
    const std::uint64_t end = by_bytes_ ? tokens.end[i] : position + 1;
    auto row = std::partition_point(rows.begin(), rows.end(),
                                    [&](const PlacedRow& one) { return one.end <= begin; });
    std::int32_t best = -1;
    std::uint64_t most = 0;
    for (; row != rows.end() && row->begin < end; ++row) {
        const std::uint64_t covered = std::min(end, row->end) - std::max(begin, row->begin);
        if (covered > most) {
            most = covered;
            best = row->entry;
        }
    }
    return best;
}

} // namespace ponderscope
