// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/trace/reader.h"
#include "views/chart/chart.h"
#include "views/depth/depth_map.h"

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// The first signal of a run that has weights by layer and source. InputError: it has none.
SignalInfo depth_signal(const TraceReader& reader, const RunInfo& run);

/// Rows of a depth signal from all over a run, or over the sequence \p only of it, as one map: at most
/// DepthMap::most_rows rows in evenly spaced slices, so that the read size does not grow with the run.
/// InputError as DepthMap.
DepthMap sampled_depth(const TraceReader& reader, const RunInfo& run, const SignalInfo& info,
                       const std::stop_token& stop = {}, std::optional<std::int64_t> only = {});

/// A source that a run was computed without: the value of layer `source`, removed from the depth attention of
/// one layer, or of all layers that read it.
struct AblatedSource {
    std::int64_t source = 0;
    std::optional<std::int64_t> layer; ///< nothing: all layers
    friend bool operator==(const AblatedSource&, const AblatedSource&) = default;
};
/// The sources that a recorded run was computed without, by its notices (`record --ablate-source`). Any
/// thread.
std::vector<AblatedSource> ablated_sources(const RunInfo& run);

/// Weight of a source beside what leaving it out does to the NLL: the two need not agree (arXiv 2606.13168).
struct AblationEffect {
    std::string run; ///< name of the run that was computed without the source
    AblatedSource what;
    double weight = 0;   ///< mean over tokens and heads, of the layer or over all layers that read it
    Estimate difference; ///< mean NLL of that run minus the base run's, nats; paired
};

/// The effects of the runs among \p candidates that are the base run's model over its text with one source
/// left out; in the order of layers and sources. InputError: the base run has no depth weights.
std::vector<AblationEffect>
ablation_effects(const std::filesystem::path& trace, const std::string& run,
                 const std::vector<std::pair<std::filesystem::path, std::string>>& candidates,
                 const BootstrapOptions& options);
/// Whether a run is such a candidate, according to the trace.
bool ablates(const RunInfo& candidate, const RunInfo& base);

/// Mean weight by layer and source of a run.
Chart depth_weights_chart(const DepthMap& map);
/// Weight against change in NLL, a point a source.
Chart depth_ablation_chart(const std::vector<AblationEffect>& effects);

} // namespace ponderscope
