// SPDX-License-Identifier: GPL-3.0-or-later
// ponderscope-engine: the verbs that compute. Without Qt: a GPU server needs only this and ponderscope.
#include "app/cli/verbs.h"

#include <malloc.h>

int main(int argc, char** argv) {
    // Every pass needs as much memory as the pass before. Keep freed memory, because the system would have to
    // clear its pages again for each pass.
    mallopt(M_MMAP_THRESHOLD, 32 << 20); // the largest value that glibc accepts
    mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
    return ponderscope::cli::run_program(argc, argv, [](CLI::App& program) {
#define PONDERSCOPE_VERB(name, where, description) ponderscope::cli::add_##name(program);
#include "app/cli/verbs.def"
#undef PONDERSCOPE_VERB
    });
}
