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
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

enum class HaltingChart { steps, nll, gates, entropy, probability };
/// The title of a chart. \p unit: RunInfo::step_unit.
QString halting_title(HaltingChart chart, const std::string& unit = "step");
/// The shares of tokens that stopped at each step.
Chart steps_chart(const std::vector<std::int64_t>& counts, const std::string& unit);
Chart halting_chart(HaltingChart kind, const HaltingStats& stats);

/// Name of a group. \p by: the criterion of the groups, as in steps_by_type_chart.
QString group_name(const TokenGrouping::Group& group, const std::string& by);
/// The bytes of a token type; its id if the vocabulary lacks the bytes.
QString type_name(std::int32_t id, const std::string& bytes);

/// Mean and middle half of a quantity by step, from step \p first on: a band, a line, and points. \p label:
/// the text of a point, from its step, the mean, and the first and third quartile.
std::vector<Chart::Series>
spread_series(std::span<const Spread> steps, std::size_t first,
              const std::function<QString(std::size_t k, double mean, double low, double high)>& label);

/// Mean and middle half of a signal by step (or iteration), over the tokens that ran the step. The signal has
/// the axes token and step. For ranks, uses only tokens with a target. A signal that compares steps is drawn
/// from the first step with a value. Divergences and distances have a logarithmic axis. Reads in slices.
/// InputError: the run lacks the signal; the message lists the run's signals.
Chart signal_by_step_chart(const std::filesystem::path& trace, const std::string& run,
                           const std::string& signal, const std::stop_token& stop = {});

/// Tokens of a sequence.
struct SequenceSpan {
    std::int64_t sequence = 0;
    std::int64_t first = 0;
    std::int64_t last = 0; ///< not included
};
/// Mean of a signal with axes token, step and layer, over the tokens that ran the step: layers downwards,
/// steps to the right. \p signal: its name, with or without `layer_`. InputError: the run lacks the signal
/// (the message lists its signals), or the values are ids.
Chart layers_by_step_chart(const std::filesystem::path& trace, const std::string& run,
                           const std::string& signal, const std::stop_token& stop = {},
                           const std::optional<SequenceSpan>& rows = {});

/// Mean steps by "class", "type", "position" or "difficulty" (fifths of the NLL). The 95 % intervals assume
/// independent clusters or blocks of tokens. \p attribution: which token decides the group.
Chart steps_by_type_chart(const std::filesystem::path& trace, const std::string& run, const std::string& by,
                          Attribution attribution, const std::stop_token& stop = {});

} // namespace ponderscope
