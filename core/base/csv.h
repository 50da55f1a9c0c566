// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// \p text as a field of a CSV table, in double quotes if needed.
std::string csv_field(std::string_view text);

/// The records of a CSV table (RFC 4180): fields with commas, quotes or line ends are in double quotes. Skips
/// a byte order mark at the beginning.
class CsvRecords {
public:
    /// \p file is the name of the table in error messages. \p file and \p text must outlive the object.
    CsvRecords(const std::filesystem::path& file, std::string_view text);

    /// Reads the next record. False at the end. InputError: an opening quote without a closing quote.
    bool next(std::vector<std::string>& fields);
    /// The line of the file, from 1, on which the last record begins.
    [[nodiscard]] std::int64_t line() const { return line_; }

private:
    const std::filesystem::path& file_;
    std::string_view rest_;
    std::int64_t line_ = 1, next_line_ = 1;
};

} // namespace ponderscope
