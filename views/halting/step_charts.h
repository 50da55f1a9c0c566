// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/halting.h"
#include "core/stats/token_groups.h"
#include "core/trace/records.h"
#include "views/chart/chart.h"
#include "views/common/selection.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// Name of a group; \p by: what the tokens are grouped by, as for steps_by_type_chart.
QString group_name(const TokenGrouping::Group& group, const std::string& by);
/// A token type by its bytes; by its id where the vocabulary does not have it.
QString type_name(std::int32_t id, const std::string& bytes);

/// Mean and middle half of something by step, from step \p first on: a band, a line, and points with a \p
/// label of the step, the mean, and the first and the third quartile.
std::vector<Chart::Series>
spread_series(std::span<const Spread> steps, std::size_t first,
              const std::function<QString(std::size_t k, double mean, double low, double high)>& label);

/// Mean and middle half of a signal with axes token and step (or iteration) by its second axis, over the
/// tokens that ran the step and, of ranks, have a target. Signals that compare with earlier steps begin where
/// they have some; divergences and distances stand on a logarithmic axis. Reads in slices. InputError: the
/// run has no such signal (its own are named).
Chart signal_by_step_chart(const std::filesystem::path& trace, const std::string& run,
                           const std::string& signal, const std::stop_token& stop = {});

/// Mean of a signal with axes token, step and layer, over the tokens that ran the step: layers upwards, steps
/// to the right. \p signal: its name, with or without `layer_`. InputError: the run has none such (its own
/// are named), or its values are ids.
Chart layers_by_step_chart(const std::filesystem::path& trace, const std::string& run,
                           const std::string& signal, const std::stop_token& stop = {});

/// Mean steps by "class", "type", "position" or "difficulty" (fifths of the NLL), with 95 % intervals over
/// the clusters or blocks that have some of a group's tokens. \p attribution: whose type a row counts for.
Chart steps_by_type_chart(const std::filesystem::path& trace, const std::string& run, const std::string& by,
                          Attribution attribution, const std::stop_token& stop = {});

} // namespace ponderscope
