// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/run_reading.h"

#include "core/base/error.h"
#include "core/stats/paired.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {

void ScoredTokens::append(const ScoredTokens& more) {
    append_to(id, more.id);
    append_to(steps, more.steps);
    append_to(nll, more.nll);
    append_to(entropy, more.entropy);
    append_to(bytes, more.bytes);
    layout.append(more.layout);
}

ScoredRun::ScoredRun(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options,
                     bool keep_tokens, LabelPlace types)
    : trace_(trace),
      run_(run),
      types_(types),
      sequences_(trace.sequences(run.id)),
      scan_({&trace}, tokens_of(sequences_), options.progress, options.stop, options.threads) {
    ClusterNumbers clusters;
    ClusterNumbers scored;
    for (const SequenceInfo& sequence : sequences_) {
        // Those without a target give no token; which ones these are is seen when they are read.
        cluster_.push_back(clusters.of(sequence));
        most_tokens_ += sequence.scored_tokens;
        if (sequence.scored_tokens > 0) {
            (void)scored.of(sequence);
        }
    }
    most_clusters_ = clusters.count();
    if (keep_tokens || !draws_whole_clusters(options, scored.count())) {
        tokens_ = read_all(scan_, pages());
        most_tokens_ = static_cast<std::int64_t>(tokens_->nll.size());
        most_clusters_ = tokens_->layout.clusters();
    }
    if (most_tokens_ == 0) {
        throw InputError(trace.short_name_of(run) +
                         ": expected scored tokens, found none; let the recording get further.");
    }
}

Source<ScoredTokens> ScoredRun::source() const {
    return tokens_ ? source_of(*tokens_) : source_of(scan_, pages());
}

ReadPage<ScoredTokens> ScoredRun::pages() const {
    return [this](std::span<const TraceReader* const> readers, std::int64_t number, std::int64_t& from,
                  ScoredTokens& into) {
        constexpr std::int64_t page = 1 << 16;
        const auto s = static_cast<std::size_t>(number);
        const std::int64_t begin = from;
        const std::int64_t end = std::min(begin + page, sequences_[s].tokens);
        from = end;
        // One more for the target of the last.
        const TokenColumns tokens = readers[0]->tokens(run_.id, number, begin, end + 1);
        for (std::size_t i = 0; i < static_cast<std::size_t>(end - begin); ++i) {
            if (std::isnan(tokens.nll[i])) {
                continue;
            }
            const std::int64_t position = begin + static_cast<std::int64_t>(i);
            into.layout.add(cluster_[s], into.last + 1 == position);
            into.last = position;
            into.id.push_back(
                tokens.id[std::min(i + (types_ == LabelPlace::prediction ? 1U : 0U), tokens.size() - 1)]);
            into.steps.push_back(static_cast<double>(tokens.steps[i]));
            into.nll.push_back(double{tokens.nll[i]});
            into.entropy.push_back(double{tokens.entropy[i]});
            into.bytes.push_back(target_bytes(tokens, i));
        }
        return end < sequences_[s].tokens;
    };
}

} // namespace ponderscope
