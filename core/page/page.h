// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// Options of a page. A page is a self-contained HTML file that shows one run, or two side by side, without
/// network access. It is page.html with the packed data (packed.cpp).
struct PageOptions {
    std::string title;                   ///< empty: the trace's name
    std::vector<std::int64_t> sequences; ///< numbers of the sequences to show, in this order; empty: all
    std::int64_t max_tokens = 100'000;   ///< limit of the shown text; the numbers cover all tokens
    BootstrapOptions bootstrap;          ///< options of the intervals
};

/// Chooses the runs for a page: one or two named runs with the same text and tokenizer. By default the first
/// run and the next comparable run. InputError: an unknown name, more than two names, runs with different
/// texts or tokenizers.
std::vector<RunInfo> choose_page_runs(const TraceReader& trace, const std::vector<std::string>& names);

/// The HTML text. \p runs: one or two runs of the trace. InputError: a run without scored tokens, an unknown
/// sequence. Throws Cancelled.
std::string make_page(const TraceReader& trace, const std::vector<RunInfo>& runs,
                      const PageOptions& options = {});

/// The packed data of the page: a JSON header and arrays. For tests.
std::string packed_page(const TraceReader& trace, const std::vector<RunInfo>& runs,
                        const PageOptions& options = {});

} // namespace ponderscope
