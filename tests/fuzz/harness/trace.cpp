// SPDX-License-Identifier: GPL-3.0-or-later
// A trace as a database file: all that views and commands read of it, `check`, a merge of what is sound, and
// a writer that appends to it.
#include "core/trace/digests.h"
#include "core/trace/tools/check.h"
#include "core/trace/tools/merge.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/fuzz/harness/harness.h"
#include "tests/fuzz/read_everything.h"

#include <algorithm>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    const auto path = fuzz::put("a.ponder", fuzz::text_of(data, size));
    fuzz::read_everything(path, fuzz::fail);
    fuzz::ask([&] { (void)check_trace(path, 20); });
    const auto merged = fuzz::folder() / "merged.ponder";
    const std::uint32_t draw = crc32_of(std::as_bytes(std::span(data, size)));
    if (draw % 64 == 0) { // it takes as long as a hundred others
        fuzz::ask([&] { merge_runs({{path, ""}}, merged); });
    }
    if (draw % 16 == 1) {
        fuzz::ask([&] {
            TraceWriter writer(path);
            testing::write_sample_run(writer, "appended", 2, {50}, 20);
            writer.finish();
        });
    }
    if (draw % 16 == 2) { // a log that belongs to nothing
        fuzz::put("a.ponder-wal", fuzz::text_of(data, std::min<std::size_t>(size, 5000)));
        fuzz::read_everything(path, fuzz::fail);
    }
    std::error_code ignored;
    for (const char* suffix : {".ponder-wal", ".ponder-shm", ".ponder-journal"}) {
        std::filesystem::remove(fuzz::folder() / (std::string("a") + suffix), ignored);
    }
    std::filesystem::remove(merged, ignored);
    return 0;
}
