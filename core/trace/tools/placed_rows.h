// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/reader.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ponderscope {

/// A table row about a part of a text: bytes, which are valid for every tokenizer, or tokens.
struct PlacedRow {
    std::string document;       ///< title or number (from 0) of a sequence; empty: the only sequence
    std::int64_t sequence = -1; ///< number of the sequence; -1: unknown, use `document`
    std::uint64_t begin = 0;    ///< bytes [begin, end) of the text, or tokens [begin, end)
    std::uint64_t end = 0;
    std::int32_t entry = 0;    ///< index that the owner of the rows sets, such as the number of a class
    std::int64_t line = 0;     ///< line in the file, for messages
    bool number_first = false; ///< try `document` as a number first, then as a title
};

/// A CSV table with a header: document,begin,end (bytes) or sequence,token, and columns of values, in any
/// order. `document` is read as a title first, then as a number; `sequence` as a number first, then as a
/// title. A run with one sequence needs neither column. `token`, `token_index` and `position` are
/// synonyms: the first of them in the header is used. In a table with begin,end the bytes locate the rows,
/// and token columns are ignored.
struct PlacedTable {
    std::filesystem::path file;
    bool by_bytes = true;
    std::vector<PlacedRow> rows; ///< `entry` is the index of the row
    std::vector<std::string> names;
    std::vector<std::vector<std::string>> columns; ///< [name][row]

    /// InputError with the line: not such a table. \p expected: description of the header, for messages.
    static PlacedTable read(const std::filesystem::path& csv, const std::string& expected);
};

/// Assigns rows to the tokens of a run.
class PlacedTokens {
public:
    /// \p file: name for messages. InputError: a sequence that the run lacks, bytes for a run without text,
    /// or overlapping rows. Ignores rows beyond the end of a partial run.
    PlacedTokens(const TraceReader& trace, const RunInfo& run, const std::filesystem::path& file,
                 bool by_bytes, const std::vector<PlacedRow>& rows,
                 const std::vector<SequenceInfo>& sequences);

    /// InputError: rows beyond the text or tokens of a complete run.
    void check_length(const SequenceInfo& sequence) const;
    /// `entry` of the row that covers most bytes of token \p i of \p tokens. If several rows cover equally
    /// many, the first. -1: no row covers the token, or \p tokens has no such token.
    [[nodiscard]] std::int32_t entry_of(const SequenceInfo& sequence, const TokenColumns& tokens,
                                        std::size_t i) const;

private:
    const TraceReader& trace_;
    const RunInfo& run_;
    std::filesystem::path file_;
    bool by_bytes_;
    std::map<std::int64_t, std::vector<PlacedRow>> rows_; ///< for each sequence, sorted by `begin`
};

} // namespace ponderscope
