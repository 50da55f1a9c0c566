// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/console.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/trace/reader.h"
#include "core/trace/shard.h"
#include "core/trace/tools/summary.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace ponderscope::cli {

bool is_trace(const std::filesystem::path& path) {
    if (remote::is_remote(path)) {
        return true; // only traces can be inspected on another machine
    }
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) {
        return path.extension() != ".json" && path.extension() != ".safetensors";
    }
    if (std::filesystem::exists(path / "config.json", error)) {
        return false;
    }
    try {
        return !find_shards(path).empty();
    } catch (const InputError&) {
        return false;
    }
}

void inspect_trace(const std::filesystem::path& path, bool json) {
    const TraceReader reader = TraceReader::open(path);
    if (json) {
        print_json(trace_summary_json(reader));
    } else {
        std::cout << trace_summary(reader);
    }
}

void add_inspect_trace(CLI::App& program) {
    struct Verb {
        std::filesystem::path path;
        bool json = false;

        void run() const { inspect_trace(path, json); }
    };
    auto [app, verb] = add_verb<Verb>(program, "inspect");
    app.add_option("path", verb.path, "Trace")->required();
    app.add_flag("--json", verb.json, "Print the result as JSON");
}

} // namespace ponderscope::cli
