// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/progress_option.h"

#include <map>
#include <string>

namespace ponderscope::cli {

void ProgressOption::add_to(CLI::App& verb) {
    static const std::map<std::string, ProgressStyle> styles{
        {"auto", ProgressStyle::automatic}, {"json", ProgressStyle::json}, {"none", ProgressStyle::none}};
    verb.add_option("--progress", style,
                    "Progress on standard error, one of auto, json, none: auto prints on a terminal, json "
                    "one object a line")
        ->transform(CLI::CheckedTransformer(styles).description("{auto,json,none}"))
        ->type_name("TEXT")
        ->default_str("auto");
}

} // namespace ponderscope::cli
