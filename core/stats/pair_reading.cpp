// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/pair_reading.h"

#include "core/base/error.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// Tokens read at once, so that a sequence of any length takes the same memory.
constexpr std::int64_t tokens_a_page = 1 << 16;

void check_same_text(const TraceReader& trace_a, const RunInfo& a, const TraceReader& trace_b,
                     const RunInfo& b, const std::string& both) {
    if (a.text_digest != b.text_digest) {
        throw InputError(both + ": expected two runs of one text, found runs of " +
                         (a.text_source == b.text_source ? "two versions of " + a.text_source
                                                         : a.text_source + " and of " + b.text_source) +
                         "; record both on the same text.");
    }
    if (!have_same_tokens(trace_a, a, trace_b, b)) {
        throw InputError(both + ": expected two runs of one tokenizer, found different ones, so that tokens "
                                "have no partners; "
                                "ponderscope compare sets their bits per byte against each other.");
    }
}

std::vector<std::int64_t> common_tokens(const std::vector<SequenceInfo>& a,
                                        const std::vector<SequenceInfo>& b) {
    std::vector<std::int64_t> tokens;
    for (std::size_t s = 0; s < std::min(a.size(), b.size()); ++s) {
        tokens.push_back(std::min(a[s].tokens, b[s].tokens));
    }
    return tokens;
}

} // namespace

bool have_same_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                      const RunInfo& run_b) {
    if (run_a.tokenizer_digest == run_b.tokenizer_digest) {
        return true;
    }
    const std::vector<std::int64_t> common =
        common_tokens(trace_a.sequences(run_a.id), trace_b.sequences(run_b.id));
    for (std::size_t s = 0; s < common.size(); ++s) {
        const auto number = static_cast<std::int64_t>(s);
        for (std::int64_t begin = 0; begin < common[s]; begin += tokens_a_page) {
            const std::int64_t end = std::min(begin + tokens_a_page, common[s]);
            const TokenColumns a = trace_a.tokens(run_a.id, number, begin, end);
            const TokenColumns b = trace_b.tokens(run_b.id, number, begin, end);
            if (a.id != b.id || a.begin != b.begin || a.end != b.end) {
                return false;
            }
        }
    }
    return std::ranges::any_of(common, [](std::int64_t tokens) { return tokens > 0; });
}

PairReading::PairReading(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                         const RunInfo& run_b, const ProgressSink& progress, const std::stop_token& stop,
                         int threads)
    : run_a_(run_a),
      run_b_(run_b),
      name_a_(trace_a.short_name_of(run_a)),
      name_b_(trace_b.short_name_of(run_b)),
      sequences_a_((check_same_text(trace_a, run_a, trace_b, run_b, both()), trace_a.sequences(run_a.id))),
      sequences_b_(trace_b.sequences(run_b.id)),
      scan_({&trace_a, &trace_b}, common_tokens(sequences_a_, sequences_b_), progress, stop, threads) {
    ClusterNumbers clusters;
    ClusterNumbers scored;
    for (std::size_t s = 0; s < scan_.sequences(); ++s) {
        const SequenceInfo& a = sequences_a_[s];
        const SequenceInfo& b = sequences_b_[s];
        cluster_.push_back(clusters.of(a, b, both()));
        if (a.scored_tokens > 0 && b.scored_tokens > 0) {
            (void)scored.of(a, b, both());
        }
        most_tokens_ += std::min(a.scored_tokens, b.scored_tokens);
    }
    most_clusters_ = clusters.count();
    likely_clusters_ = scored.count();
}

std::string PairReading::both() const {
    return name_a_ + " and " + name_b_;
}

ReadPage<PairedSample> PairReading::pages() const {
    return [this](std::span<const TraceReader* const> readers, std::int64_t number, std::int64_t& from,
                  PairedSample& into) {
        const auto s = static_cast<std::size_t>(number);
        const std::int64_t tokens = std::min(sequences_a_[s].tokens, sequences_b_[s].tokens);
        const std::int64_t begin = from;
        const std::int64_t end = std::min(begin + tokens_a_page, tokens);
        from = end;
        // One more for the target of the last.
        const TokenColumns a = readers[0]->tokens(run_a_.id, number, begin, end + 1);
        const TokenColumns b = readers[1]->tokens(run_b_.id, number, begin, end + 1);
        for (std::size_t i = 0; i < static_cast<std::size_t>(end - begin); ++i) {
            const std::int64_t position = begin + static_cast<std::int64_t>(i);
            const bool in_a = !std::isnan(a.nll[i]);
            const bool in_b = !std::isnan(b.nll[i]);
            const bool targets = i + 1 < a.size() && i + 1 < b.size();
            if (a.id[i] != b.id[i] || (targets && a.id[i + 1] != b.id[i + 1])) {
                const std::size_t at = a.id[i] != b.id[i] ? i : i + 1;
                throw InputError(both() + ": expected the same tokens, found " + std::to_string(a.id[at]) +
                                 " and " + std::to_string(b.id[at]) + " at token " +
                                 std::to_string(begin + static_cast<std::int64_t>(at)) + " of sequence " +
                                 std::to_string(number) +
                                 "; record both on the same text with the same tokenizer.");
            }
            if (!in_a || !in_b) {
                continue;
            }
            into.layout.add(cluster_[s], into.last + 1 == position);
            into.last = position;
            into.a.push_back(a.nll[i]);
            into.b.push_back(b.nll[i]);
            if (a.rank[i] > 0 && b.rank[i] > 0) { // 0 at a scored token: the writer did not know it
                into.right_a.push_back(a.rank[i] == 1 ? 1 : 0);
                into.right_b.push_back(b.rank[i] == 1 ? 1 : 0);
            }
            into.steps_a.push_back(a.steps[i]);
            const TokenColumns& with_target = i + 1 < a.size() ? a : b;
            into.bytes.push_back(target_bytes(with_target, i));
        }
        return end < tokens;
    };
}

void PairReading::finish(PairedSample& sample, std::int64_t count) const {
    const auto rest = [&](const std::vector<SequenceInfo>& sequences) {
        std::int64_t scored = 0;
        for (const SequenceInfo& sequence : sequences) {
            scored += sequence.scored_tokens;
        }
        return std::max<std::int64_t>(0, scored - count);
    };
    sample.only_a = rest(sequences_a_);
    sample.only_b = rest(sequences_b_);
    if (sample.only_a > 0 || sample.only_b > 0) {
        sample.notices.push_back("Only the " + std::to_string(count) +
                                 " tokens that both runs scored are compared; " +
                                 std::to_string(sample.only_a) + " of " + run_a_.name + " and " +
                                 std::to_string(sample.only_b) + " of " + run_b_.name + " are left out.");
    }
    for (const RunInfo* run : {&run_a_, &run_b_}) {
        if (!run->complete) {
            sample.notices.push_back("Run " + run->name + " is partial.");
        }
    }
    if (run_a_.scoring != run_b_.scoring) {
        sample.notices.push_back("The runs were scored in different ways: " + run_a_.name + " " +
                                 run_a_.scoring + ", " + run_b_.name + " " + run_b_.scoring + ".");
    }
    if (count == 0) {
        throw InputError(both() +
                         ": expected tokens that both scored, found none; let both recordings get further.");
    }
}

void PairedSample::append(const PairedSample& more) {
    append_to(a, more.a);
    append_to(b, more.b);
    append_to(bytes, more.bytes);
    append_to(right_a, more.right_a);
    append_to(right_b, more.right_b);
    append_to(steps_a, more.steps_a);
    layout.append(more.layout);
    sequences += more.a.empty() ? 0 : 1;
}

PairedSample pair_runs(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                       const RunInfo& run_b, const ProgressSink& progress, const std::stop_token& stop) {
    return PairReading(trace_a, run_a, trace_b, run_b, progress, stop).sample();
}

PairedSample PairReading::sample() const {
    PairedSample all = read_all(scan_, pages());
    finish(all, static_cast<std::int64_t>(all.a.size()));
    return all;
}

} // namespace ponderscope
