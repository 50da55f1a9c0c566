// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/stats/bootstrap.h"
#include "core/stats/layout.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// Calls \p work once for each part 0..parts-1, by up to \p workers threads: the calling thread, which is
/// worker 0, and helpers. After a failure no further part is begun, but a part that was begun is finished, so
/// the exception of the lowest failed part is the one that is thrown.
void for_each_part(std::size_t parts, std::size_t workers,
                   const std::function<void(std::size_t part, std::size_t worker)>& work);

/// Work to do once all earlier sequences are done.
using Commit = std::function<void()>;

/// The number of tokens of each sequence.
std::vector<std::int64_t> tokens_of(const std::vector<SequenceInfo>& sequences);

/// The sequences that some runs have in common, read by several threads as often as asked for.
///
/// What is summed as real numbers is summed in commits, so that the order of sums, and with it every bit of a
/// result, depends on no thread. Counts may be kept for each worker and merged.
class SequenceScan {
public:
    /// \p tokens: of each sequence; how the work is cut. The traces outlive the scan. \p threads: 0: as many
    /// as the machine has; fewer where the files are small, or may not be open so often.
    SequenceScan(std::vector<const TraceReader*> traces, std::vector<std::int64_t> tokens,
                 ProgressSink progress = {}, std::stop_token stop = {}, int threads = 0);

    [[nodiscard]] std::size_t workers() const { return readers_.size(); }
    [[nodiscard]] std::size_t sequences() const { return tokens_.size(); }

    /// Sequences [first, end), and the readers of the thread that is to read them.
    struct Part {
        std::size_t worker;
        std::span<const TraceReader* const> readers;
        std::int64_t first, end;
    };
    /// Calls \p visit for parts that together are all sequences, the same ones every time. What it returns is
    /// called in the order of the sequences, one at a time. The first exception in that order is rethrown.
    /// Cancelled.
    void each(const std::function<Commit(const Part&)>& visit) const;

private:
    std::vector<std::int64_t> tokens_;
    std::vector<std::size_t> parts_; ///< first sequence of each part of the work, and one behind the last
    std::vector<TraceReader> opened_;
    std::vector<std::vector<const TraceReader*>> readers_; ///< a worker
    ProgressSink progress_;
    std::stop_token stop_;
};

/// Tokens [begin, end) of \p sample, which are of one cluster, seen by a worker.
template <class Sample>
using Look = std::function<Commit(std::size_t worker, std::int64_t cluster, const Sample& sample,
                                  std::size_t begin, std::size_t end)>;
/// Flushes a worker before it continues with tokens that do not follow the last ones.
using Pause = std::function<Commit(std::size_t worker)>;
/// Shows all tokens of a sample once, in pieces, each of consecutive ones: commits run in the order of
/// tokens.
template <class Sample>
using Source = std::function<void(const Look<Sample>&, const Pause&)>;

/// The source of a sample that lies in memory and has a `layout`; one worker. The sample must outlive the
/// source.
template <class Sample>
Source<Sample> source_of(const Sample& sample) {
    return [&sample](const Look<Sample>& look, const Pause& pause) {
        const auto run = [](const Commit& commit) {
            if (commit) {
                commit();
            }
        };
        std::size_t begin = 0;
        for (std::size_t s = 0; s < sample.layout.stretches.size(); ++s) {
            const std::size_t end = begin + static_cast<std::size_t>(sample.layout.stretches[s]);
            run(look(0, sample.layout.cluster_of[s], sample, begin, end));
            begin = end;
        }
        if (pause) {
            run(pause(0));
        }
    };
}

/// Reads a page of a sequence behind what \p into holds, and says whether there is another. \p from: token of
/// the sequence, moved on.
template <class Sample>
using ReadPage = std::function<bool(std::span<const TraceReader* const> readers, std::int64_t sequence,
                                    std::int64_t& from, Sample& into)>;

/// The source of a sample that is read page by page; no page is kept. The scan must outlive the source.
template <class Sample>
Source<Sample> source_of(const SequenceScan& scan, ReadPage<Sample> read) {
    return [&scan, read = std::move(read)](const Look<Sample>& look, const Pause& pause) {
        scan.each([&](const SequenceScan::Part& part) {
            std::vector<Commit> commits;
            const auto keep = [&](Commit commit) {
                if (commit) {
                    commits.push_back(std::move(commit));
                }
            };
            for (std::int64_t sequence = part.first; sequence < part.end; ++sequence) {
                bool more = true;
                for (std::int64_t from = 0; more;) {
                    Sample page;
                    more = read(part.readers, sequence, from, page);
                    source_of(page)(
                        [&](std::size_t, std::int64_t cluster, const Sample& sample, std::size_t begin,
                            std::size_t end) -> Commit {
                            keep(look(part.worker, cluster, sample, begin, end));
                            return {};
                        },
                        {});
                }
            }
            if (pause) {
                keep(pause(part.worker));
            }
            return [commits = std::move(commits)] {
                for (const Commit& commit : commits) {
                    commit();
                }
            };
        });
    };
}

/// The whole of it in memory, in the order of sequences and positions. Sample::append: the tokens of the next
/// sequence.
template <class Sample>
Sample read_all(const SequenceScan& scan, const ReadPage<Sample>& read) {
    Sample all;
    scan.each([&](const SequenceScan::Part& part) {
        std::vector<Sample> samples;
        for (std::int64_t sequence = part.first; sequence < part.end; ++sequence) {
            samples.emplace_back();
            for (std::int64_t from = 0; read(part.readers, sequence, from, samples.back());) {
            }
        }
        return [&all, samples = std::move(samples)] {
            for (const Sample& sample : samples) {
                all.append(sample);
            }
        };
    });
    all.layout.close_gaps();
    return all;
}

/// A value behind others.
template <class Value>
void append_to(std::vector<Value>& all, const std::vector<Value>& more) {
    all.insert(all.end(), more.begin(), more.end());
}

/// Calls visit(sequence, begin, end) for tokens [begin, end) of every sequence of a run, at most 65,536 at a
/// time: what is read of a long text at once stays small. Cancelled.
template <typename Visit>
void for_each_slice(const TraceReader& reader, const RunInfo& run, const std::stop_token& stop,
                    const Visit& visit) {
    constexpr std::int64_t slice_tokens = 1 << 16;
    for (const SequenceInfo& sequence : reader.sequences(run.id)) {
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += slice_tokens) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            visit(sequence, begin, std::min(begin + slice_tokens, sequence.tokens));
        }
    }
}

/// Calls visit(sequence, tokens, i, position) for every token with a target, in order: row i of \p tokens,
/// which go on to one behind the slice, for the target of its last token. Cancelled.
template <typename Visit>
void for_each_scored(const TraceReader& reader, const RunInfo& run, const std::stop_token& stop,
                     const Visit& visit) {
    for_each_slice(reader, run, stop,
                   [&](const SequenceInfo& sequence, std::int64_t begin, std::int64_t end) {
                       const TokenColumns tokens = reader.tokens(run.id, sequence.number, begin, end + 1);
                       const auto rows = std::min(tokens.size(), static_cast<std::size_t>(end - begin));
                       for (std::size_t i = 0; i < rows; ++i) {
                           if (!std::isnan(tokens.nll[i])) {
                               visit(sequence, tokens, i, begin + static_cast<std::int64_t>(i));
                           }
                       }
                   });
}

/// The layout of tokens that come one by one, in the order of sequences and positions.
class LayoutBuilder {
public:
    void add(const SequenceInfo& sequence, std::int64_t position) {
        if (sequence_ != sequence.number) {
            cluster_ = clusters_.of(sequence);
            last_ = -2;
        }
        sequence_ = sequence.number;
        layout.add(cluster_, last_ + 1 == position);
        last_ = position;
    }
    TokenLayout layout;

private:
    ClusterNumbers clusters_;
    std::int64_t sequence_ = -1, cluster_ = 0, last_ = -2;
};

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
