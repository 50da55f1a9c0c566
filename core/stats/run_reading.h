// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/scan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// To which token a label's bytes, or the type of a place, belong: the one that is predicted there (what was
/// hard is what had to be said), or the one that stands there.
enum class LabelPlace : std::uint8_t { prediction, token };

/// Tokens with a target. All vectors have one length.
struct ScoredTokens {
    std::vector<std::int32_t> id;
    std::vector<double> steps;
    std::vector<double> nll;     ///< nats
    std::vector<double> entropy; ///< nats; NaN where it is not known
    std::vector<double> bytes;   ///< of text under each target; 0 without a text
    TokenLayout layout;
    std::int64_t last = -2; ///< position of the last token

    /// The tokens of the next sequence.
    void append(const ScoredTokens& more);
};

/// A run that statistics look at as often as they need: read each time by several threads where whole
/// clusters are drawn, so that no token is kept; held in memory where blocks of tokens are.
class ScoredRun {
public:
    /// \p options: how it will be resampled. \p keep_tokens: in any case. \p types: whose `id` it reads. The
    /// trace outlives it. InputError: no scored token.
    ScoredRun(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options,
              bool keep_tokens = false, LabelPlace types = LabelPlace::token);

    [[nodiscard]] const TraceReader& trace() const { return trace_; }
    [[nodiscard]] const RunInfo& run() const { return run_; }
    [[nodiscard]] const std::optional<ScoredTokens>& tokens() const {
        return tokens_;
    } ///< where they are kept
    [[nodiscard]] Source<ScoredTokens> source() const;
    [[nodiscard]] std::size_t workers() const { return tokens_ ? 1 : scan_.workers(); }
    [[nodiscard]] std::int64_t most_tokens() const {
        return most_tokens_;
    } ///< that the trace names as scored
    /// Numbers of clusters are below this; where tokens are not kept, some may turn out to have none.
    [[nodiscard]] std::int64_t most_clusters() const { return most_clusters_; }

private:
    [[nodiscard]] ReadPage<ScoredTokens> pages() const;

    const TraceReader& trace_;
    RunInfo run_;
    LabelPlace types_;
    std::vector<SequenceInfo> sequences_;
    std::vector<std::int64_t> cluster_; ///< of each sequence
    std::int64_t most_tokens_ = 0;
    std::int64_t most_clusters_ = 0;
    SequenceScan scan_;
    std::optional<ScoredTokens> tokens_;
};

} // namespace ponderscope
