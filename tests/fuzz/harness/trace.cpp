// SPDX-License-Identifier: GPL-3.0-or-later
// A trace as a database file: all that views and commands read of it, `check`, and a merge of what is sound.
#include "core/trace/tools/check.h"
#include "core/trace/digests.h"
#include "core/trace/tools/merge.h"
#include "tests/fuzz/harness/harness.h"
#include "tests/fuzz/read_everything.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    const auto path = fuzz::put("a.ponder", fuzz::text_of(data, size));
    fuzz::read_everything(path, fuzz::fail);
    fuzz::ask([&] { (void)check_trace(path, 20); });
    const auto merged = fuzz::folder() / "merged.ponder";
    if (crc32_of(std::as_bytes(std::span(data, size))) % 64 == 0) { // it takes as long as a hundred others
        fuzz::ask([&] { merge_traces({path}, merged); });
    }
    std::error_code ignored;
    for (const char* suffix : {".ponder-wal", ".ponder-shm", ".ponder-journal"}) {
        std::filesystem::remove(fuzz::folder() / (std::string("a") + suffix), ignored);
    }
    std::filesystem::remove(merged, ignored);
    return 0;
}
