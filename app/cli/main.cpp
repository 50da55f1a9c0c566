// SPDX-License-Identifier: GPL-3.0-or-later
// ponderscope: the command line. What reads traces runs here, in a program that starts at once and needs no
// LibTorch; a verb that computes is the engine's, and this program becomes it.
#include "app/cli/become.h"
#include "app/cli/console.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"

#include <cstdio>
#include <string_view>

namespace {

bool is_for_the_engine(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--help-all") {
            return true; // it prints every option of every verb
        }
        if (!word.starts_with('-')) {
            return ponderscope::cli::runs_in_engine(word);
        }
    }
    return false;
}

void add_verbs(CLI::App& program) {
    using namespace ponderscope::cli;
    const auto front = [&](void (*add)(CLI::App&), const char*) { add(program); };
    const auto engine = [&](auto, const char* name) { add_verb(program, name); };
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
            std::fprintf(stderr, "ponderscope: %s\n", error.what());
            return ponderscope::cli::wrong_input;
        }
    }
    return ponderscope::cli::run_program(argc, argv, add_verbs);
}
