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

/// The first signal of a run with weights by layer and source. InputError: there is none.
SignalInfo depth_signal(const TraceReader& reader, const RunInfo& run);

/// Rows of a depth signal from the whole run, or from the sequence \p only, as one map. Reads at most
/// DepthMap::most_rows rows in evenly spaced slices, so the read size does not grow with the run. InputError:
/// the run has no values.
DepthMap sampled_depth(const TraceReader& reader, const RunInfo& run, const SignalInfo& info,
                       const std::stop_token& stop = {}, std::optional<std::int64_t> only = {});

/// A change of the model: the depth attention of one layer or all layers does not read the layer `source`.
struct AblatedSource {
    std::int64_t source = 0;
    std::optional<std::int64_t> layer; ///< absent: all layers
    friend bool operator==(const AblatedSource&, const AblatedSource&) = default;
};
/// The removed sources of a recorded run, from its notices (`record --ablate-source`). Thread-safe.
std::vector<AblatedSource> ablated_sources(const RunInfo& run);

/// Weight of a source, and effect of its removal on the NLL. The two may disagree (arXiv 2606.13168).
struct AblationEffect {
    std::string run; ///< name of the run without the source
    AblatedSource what;
    double weight = 0;   ///< mean over tokens, heads, and all layers that read the source
    Estimate difference; ///< mean NLL of this run minus mean NLL of the base run, nats; paired
};

/// The effects of removed sources, in the order of layers and sources. Uses the \p candidates for which
/// ablates() is true. InputError: the base run has no depth weights.
std::vector<AblationEffect>
ablation_effects(const std::filesystem::path& trace, const std::string& run,
                 const std::vector<std::pair<std::filesystem::path, std::string>>& candidates,
                 const BootstrapOptions& options);
/// Whether the candidate has the base run's model, method, policy and text, but one source less.
bool ablates(const RunInfo& candidate, const RunInfo& base);

/// The content of a map by layer and source: weights of one token, or mean or spread over tokens.
enum class DepthShown { token, mean, spread };
/// Mean or spread over tokens by layer and source, or the weights of one \p token [layer * sources + source].
Chart depth_weights_chart(const DepthMap& map, const DepthMap::Averages& averages,
                          DepthShown shown = DepthShown::mean, const std::vector<float>& token = {});
/// Weight against change in NLL, one point for each removed source.
Chart depth_ablation_chart(const std::vector<AblationEffect>& effects);

} // namespace ponderscope
