// SPDX-License-Identifier: GPL-3.0-or-later
// ponderscope: the command line. Verbs that only read traces run here, so they start at once and need no
// LibTorch. For verbs that run a model, ponderscope-engine replaces this process.
#include "app/cli/console.h"
#include "app/cli/verbs.h"

#include <string_view>

namespace {

bool is_for_the_engine(int argc, char** argv) {
    const char* verb = ponderscope::cli::verb_of(argc, argv);
    // `inspect` needs LibTorch only for a checkpoint, not for a trace.
    if (verb != nullptr && verb == std::string_view("inspect")) {
        for (int i = 2; i < argc; ++i) {
            const std::string_view before = argv[i - 1];
            const bool value = before.starts_with('-') && before != "--json";
            if (argv[i] != verb && *argv[i] != '-' && !value) {
                return !ponderscope::cli::is_trace(argv[i]); // the argument that names it
            }
        }
    }
    return verb != nullptr && ponderscope::cli::runs_in_engine(verb);
}

void add_verbs(CLI::App& program) {
    using namespace ponderscope::cli;
    const auto front = [&](void (*add)(CLI::App&), const char*) { add(program); };
    const auto engine = [&](auto, const char* name) {
        name == std::string_view("inspect") ? add_inspect_trace(program) : (void)add_verb(program, name);
    };
#define PONDERSCOPE_VERB(name, where, description) where(PONDERSCOPE_ADD_##where(name), #name);
#define PONDERSCOPE_ADD_front(name) add_##name
#define PONDERSCOPE_ADD_engine(name) nullptr
#include "app/cli/verbs.def"
#undef PONDERSCOPE_VERB
#undef PONDERSCOPE_ADD_front
#undef PONDERSCOPE_ADD_engine
}

} // namespace

int main(int argc, char** argv) {
    if (is_for_the_engine(argc, argv)) {
        try {
            ponderscope::cli::become_engine(argv);
        } catch (const ponderscope::Error& error) {
            return ponderscope::cli::fail(error);
        }
    }
    return ponderscope::cli::run_program(argc, argv, add_verbs);
}
