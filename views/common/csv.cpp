// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/csv.h"

#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/stats/data_table.h"
#include "views/common/format.h"

#include <cmath>

namespace ponderscope {

std::string csv_text(const std::string& text) {
    return plain_text::csv_field(text);
}

std::string csv_bytes(const std::string& bytes) {
    return csv_text(is_valid_utf8(bytes) && bytes.find('\0') == std::string::npos
                        ? bytes
                        : visible_text(bytes).toStdString());
}

std::string csv_number(float value) {
    return std::isnan(value) ? std::string() : shortest(value);
}

std::string csv_number(double value) {
    return std::isnan(value) ? std::string() : shortest(value);
}

} // namespace ponderscope
