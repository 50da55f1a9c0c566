// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/page/page.h"

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/page/template.h"
#include "core/stats/paired.h"

#include <zlib.h>

#include <string_view>

namespace ponderscope {
namespace {

/// A zlib stream. Equal input gives equal bytes.
std::string deflated(std::string_view bytes) {
    uLongf size = compressBound(static_cast<uLong>(bytes.size()));
    std::string packed(size, '\0');
    const int end = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                              reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()),
                              Z_BEST_COMPRESSION);
    if (end != Z_OK) {
        throw Error(ErrorId::program_unexpected,
                    "The page's data could not be packed (zlib " + std::to_string(end) + ").");
    }
    packed.resize(size);
    return packed;
}

void put(std::string& text, std::string_view place, std::string_view value) {
    const std::size_t at = text.find(place);
    if (at == std::string::npos) {
        throw Error(ErrorId::program_unexpected,
                    "The page's template has no place " + std::string(place) + ".");
    }
    text.replace(at, place.size(), value);
}

} // namespace

std::vector<RunInfo> choose_page_runs(const TraceReader& trace, const std::vector<std::string>& names) {
    if (names.size() > 2) {
        throw InputError(ErrorId::usage_value, "A page shows one run or two, and " +
                                                   std::to_string(names.size()) +
                                                   " are named; make several pages.");
    }
    std::vector<RunInfo> runs;
    for (const std::string& name : names) {
        runs.push_back(find_run(trace, name));
    }
    if (runs.size() == 2) {
        const bool one_text = runs[0].text_digest == runs[1].text_digest;
        if (!one_text || !have_same_tokens(trace, runs[0], trace, runs[1])) {
            throw InputError(
                ErrorId::compare_text, trace.path(),
                std::string("two runs of one ") + (one_text ? "tokenizer" : "text"),
                runs[0].name + " and " + runs[1].name +
                    (one_text ? ", which have different tokenizers" : ", which have different texts"),
                "make a page of each run");
        }
    }
    if (!names.empty()) {
        return runs;
    }
    const std::vector<RunInfo> all = trace.runs();
    if (all.empty()) {
        (void)find_run(trace, ""); // throws the error for a trace without runs
    }
    runs.push_back(all.front());
    for (std::size_t i = 1; i < all.size() && runs.size() == 1; ++i) {
        if (all[i].text_digest == runs[0].text_digest && all[i].scored_tokens > 0 &&
            have_same_tokens(trace, runs[0], trace, all[i])) {
            runs.push_back(all[i]);
        }
    }
    return runs;
}

std::string make_page(const TraceReader& trace, const std::vector<RunInfo>& runs,
                      const PageOptions& options) {
    const std::string packed = deflated(packed_page(trace, runs, options));
    const std::string script =
        "\n" + std::string(page_template::data_and_text) + "\n" + std::string(page_template::view);
    // Allow only this script to run in the page, whatever a trace contains.
    const Sha256::Digest digest = Sha256().update(script).finish();
    std::string page(page_template::page);
    put(page, "@SCRIPT_HASH@",
        "sha256-" + to_base64({reinterpret_cast<const char*>(digest.data()), digest.size()}));
    put(page, "@SCRIPT@", script);
    put(page, "@PAYLOAD@", to_base64(packed));
    return page;
}

} // namespace ponderscope
