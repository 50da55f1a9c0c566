// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/reader.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ponderscope {

/// A row of a table about a part of a text: by bytes, for every tokenizer, or by tokens.
struct PlacedRow {
    std::string document;       ///< title or number (from 0) of a sequence; empty: the only one
    std::int64_t sequence = -1; ///< its number if that is known; else -1, and `document` names it
    std::uint64_t begin = 0;    ///< bytes [begin, end) of its text; or the token, begin = its position
    std::uint64_t end = 0;
    std::int32_t entry = 0;    ///< what is said of the part: into whatever the table keeps
    std::int64_t line = 0;     ///< of the file, for messages
    bool number_first = false; ///< `document` is a number before it is a title
};

/// A CSV table with a header: document,begin,end (bytes) or sequence,token, and columns of values, in any
/// order. `document` is a title, else a number; `sequence` is a number, else a title. Both may be absent if
/// there is one sequence. `token`, `token_index` and `position` mean the same, and are ignored beside
/// begin,end. Of two columns that mean the same, the first in the header counts.
struct PlacedTable {
    std::filesystem::path file;
    bool by_bytes = true;
    std::vector<PlacedRow> rows; ///< `entry`: the row's own number
    std::vector<std::string> names;
    std::vector<std::vector<std::string>> columns; ///< [name][row]

    /// InputError with the line for everything else. \p wanted: the required column, under one of these
    /// names; empty: any. \p expected: the header in words.
    static PlacedTable read(const std::filesystem::path& csv, const std::string& expected,
                            const std::vector<std::string>& wanted = {});
    [[nodiscard]] std::size_t column(const std::vector<std::string>& wanted) const; ///< names.size(): none
};

/// The entry of each token of a run, from rows that are placed by position or bytes.
class PlacedTokens {
public:
    /// \p file: for messages. InputError: a sequence that the run does not have, bytes for a run without
    /// text, rows that overlap. Rows beyond a partial run are left out.
    PlacedTokens(const TraceReader& trace, const RunInfo& run, const std::filesystem::path& file,
                 bool by_bytes, const std::vector<PlacedRow>& rows,
                 const std::vector<SequenceInfo>& sequences);

    /// InputError: rows beyond a complete run's text or tokens.
    void check_length(const SequenceInfo& sequence) const;
    /// The entry that covers most of token \p i of \p tokens of that sequence; of equal ones the first. -1:
    /// none, or no such token.
    [[nodiscard]] std::int32_t entry_of(const SequenceInfo& sequence, const TokenColumns& tokens,
                                        std::size_t i) const;

private:
    const TraceReader& trace_;
    const RunInfo& run_;
    std::filesystem::path file_;
    bool by_bytes_;
    std::map<std::int64_t, std::vector<PlacedRow>> rows_; ///< by sequence, in the order of `begin`
};

} // namespace ponderscope
