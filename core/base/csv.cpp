// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/csv.h"

#include "core/base/error.h"

#include <utility>

namespace ponderscope {

std::string csv_field(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos && !text.starts_with(' ') &&
        !text.ends_with(' ')) {
        return std::string(text);
    }
    std::string quoted = "\"";
    for (const char c : text) {
        quoted.append(c == '"' ? 2 : 1, c);
    }
    return quoted + '"';
}

CsvRecords::CsvRecords(const std::filesystem::path& file, std::string_view text) : file_(file), rest_(text) {
    if (rest_.starts_with("\xEF\xBB\xBF")) {
        rest_.remove_prefix(3);
    }
}

bool CsvRecords::next(std::vector<std::string>& fields) {
    fields.clear();
    if (rest_.empty()) {
        return false;
    }
    line_ = next_line_;
    std::string field;
    bool quoted = false;
    while (true) {
        const char c = rest_.empty() ? '\n' : rest_.front();
        const bool ends = rest_.empty();
        if (!ends) {
            rest_.remove_prefix(1);
        }
        next_line_ += c == '\n' ? 1 : 0;
        if (quoted && ends) {
            throw InputError(ErrorId::text_line, file_.string() + ": line " + std::to_string(line_) +
                                                     ": expected a closing quote, found the end of the file; "
                                                     "close the quote that opens on this line.");
        }
        if (quoted) {
            if (c != '"') {
                field += c;
            } else if (!rest_.empty() && rest_.front() == '"') {
                field += '"';
                rest_.remove_prefix(1);
            } else {
                quoted = false;
            }
        } else if (c == '"' && field.empty()) {
            quoted = true;
        } else if (c == ',' || c == '\n') {
            fields.push_back(std::move(field));
            field.clear();
            if (c == '\n') {
                return true;
            }
        } else if (c != '\r' || (!rest_.empty() && rest_.front() != '\n')) {
            field += c;
        }
    }
}

} // namespace ponderscope
