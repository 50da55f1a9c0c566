// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// A run, or two side by side, as one self-contained HTML file: no network, no other file. The page is
/// page.html with packed data in it (packed.cpp).
struct PageOptions {
    std::string title;                   ///< empty: the trace's name
    std::vector<std::int64_t> sequences; ///< numbers of those to show, in this order; empty: all
    std::int64_t max_tokens = 100'000;   ///< shown at most; the numbers of the table are of all tokens
    BootstrapOptions bootstrap;          ///< of the intervals
};

/// The runs that a page shows: one or two named runs of one text and tokenizer; by default the first run and
/// the next comparable one. InputError: a name that is not there, more than two, runs of different texts or
/// tokenizers.
std::vector<RunInfo> choose_page_runs(const TraceReader& trace, const std::vector<std::string>& names);

/// The HTML text. \p runs: one or two of the trace. InputError: a run without scored tokens, a sequence that
/// is not there; Cancelled.
std::string make_page(const TraceReader& trace, const std::vector<RunInfo>& runs,
                      const PageOptions& options = {});

/// The packed data of the page: a head of JSON and arrays. For tests.
std::string packed_page(const TraceReader& trace, const std::vector<RunInfo>& runs,
                        const PageOptions& options = {});

} // namespace ponderscope
