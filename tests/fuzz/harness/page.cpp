// SPDX-License-Identifier: GPL-3.0-or-later
// The page of a trace that somebody damaged: what is packed into it is JSON and arrays of the lengths that it
// says.
#include "core/page/page.h"
#include "tests/fuzz/harness/harness.h"

#include <nlohmann/json.hpp>

#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    const auto path = fuzz::put("a.ponder", fuzz::text_of(data, size));
    fuzz::ask([&] {
        const TraceReader trace = TraceReader::open(path);
        PageOptions options;
        options.max_tokens = 60;
        options.bootstrap.replicates = 20;
        const std::string packed = packed_page(trace, choose_page_runs(trace, {}), options);
        std::uint32_t length = 0;
        fuzz::require(packed.size() >= sizeof length, "no head");
        std::memcpy(&length, packed.data(), sizeof length);
        fuzz::require(length <= packed.size() - sizeof length, "a head longer than the page");
        const auto head = nlohmann::json::parse(packed.substr(sizeof length, length), nullptr, false);
        fuzz::require(head.is_object() && head.contains("runs"), "a head that is no JSON");
    });
    return 0;
}
