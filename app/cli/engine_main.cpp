// SPDX-License-Identifier: GPL-3.0-or-later
// ponderscope-engine: the verbs that compute. No Qt: a GPU server builds this and ponderscope alone.
#include "app/cli/verbs.h"

int main(int argc, char** argv) {
    return ponderscope::cli::run_program(argc, argv, [](CLI::App& program) {
#define PONDERSCOPE_VERB(name, where, description) ponderscope::cli::add_##name(program);
#include "app/cli/verbs.def"
#undef PONDERSCOPE_VERB
    });
}
