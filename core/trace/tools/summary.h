// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/reader.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ponderscope {

/// A text description of a trace for `ponderscope inspect`: a paragraph for each run, made from the totals.
std::string trace_summary(const TraceReader& reader);
/// The description as JSON: {"path", "bytes", "runs": [{...}], "trainings": [{...}], "notices": [...]}.
/// Unknown numbers are null.
nlohmann::json trace_summary_json(const TraceReader& reader);

/// Totals of a run or a sequence as rates. NaN if the divisor is 0.
double mean_nll(const TokenTotals& totals);      ///< nats
double perplexity(const TokenTotals& totals);    ///< exp(mean NLL)
double bits_per_byte(const TokenTotals& totals); ///< over the text of the scored targets
double mean_steps(const TokenTotals& totals);    ///< over the scored tokens
double mean_flops(const TokenTotals& totals);    ///< over all tokens; NaN if the FLOPs are not known

} // namespace ponderscope
