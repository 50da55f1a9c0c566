// SPDX-License-Identifier: GPL-3.0-or-later
// ponderscope-engine: the verbs that compute. No Qt: a GPU server builds this and ponderscope alone.
#include "app/cli/verbs.h"

#include <malloc.h>

int main(int argc, char** argv) {
    // Every pass needs the memory of the pass before. If it went back to the system between them, the system
    // would clear its pages anew each time.
    mallopt(M_MMAP_THRESHOLD, 32 << 20); // the most that glibc accepts
    mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
    return ponderscope::cli::run_program(argc, argv, [](CLI::App& program) {
#define PONDERSCOPE_VERB(name, where, description) ponderscope::cli::add_##name(program);
#include "app/cli/verbs.def"
#undef PONDERSCOPE_VERB
    });
}
