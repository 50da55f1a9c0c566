// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/report.h"

#include "core/base/utf8.h"

#include <iostream>

namespace ponderscope::cli {

void print_json(const nlohmann::json& document) {
    std::cout << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

void print_notices(const std::vector<std::string>& notices, const std::string& indent) {
    for (const std::string& notice : notices) {
        std::cout << indent << "note: " << visible(notice) << "\n";
    }
}

} // namespace ponderscope::cli
