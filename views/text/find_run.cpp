// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/find_run.h"

#include "core/base/error.h"
#include "core/stats/layout.h"
#include "core/stats/token_groups.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/common/trace_contents.h"
#include "views/text/find_query.h"

#include <algorithm>
#include <numeric>
#include <optional>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

/// Places that are kept; more are no selection.
constexpr qint64 most_found = 2'000'000;

/// A run of a trace that was opened for this search.
struct Opened {
    explicit Opened(const RunKey& named) : key(named), reader(TraceReader::open(path_of(named.trace))) {
        const std::vector<RunInfo> runs = reader.runs();
        const auto place =
            std::find_if(runs.begin(), runs.end(), [&](const RunInfo& one) { return one.id == key.run; });
        if (place == runs.end()) {
            throw InputError(reader.path(), "the run that is searched", "no such run",
                             "open the trace again");
        }
        run = *place;
        sequences = reader.sequences(run.id);
    }
    RunKey key;
    TraceReader reader;
    RunInfo run;
    std::vector<SequenceInfo> sequences;
};

} // namespace

qint64 FoundInRun::size() const {
    return std::accumulate(counts.begin(), counts.end(), qint64{0},
                           [](qint64 sum, const auto& one) { return sum + one.second; });
}

FoundInRun find_in_run(const RunKey& a, const RunKey& b, const QString& query, Attribution attribution,
                       std::atomic<qint64>& done, const std::stop_token& stop) {
    const Opened own(a);
    const std::optional<AnnotationReader> annotations = open_annotations(own.reader);
    const std::optional<Opened> other = b.isValid() ? std::optional<Opened>(b) : std::nullopt;
    const std::optional<AnnotationReader> none; // of B nothing is searched
    std::atomic<bool> stopped = false;
    const std::stop_callback stops(stop, [&stopped] { stopped = true; });
    const auto read = [&](const Opened& from, std::int64_t sequence) {
        auto block = read_sequence(from.reader, &from == &own ? annotations : none, from.key, sequence,
                                   nullptr, stopped);
        if (!block) {
            throw Cancelled();
        }
        return block;
    };
    FoundInRun found;
    SubsetMeans means(attribution);
    ClusterNumbers clusters;
    for (const SequenceInfo& sequence : own.sequences) {
        const auto block = read(own, sequence.number);
        const Found here = find_in(*block, query, attribution);
        if (query.startsWith(u'/') && !here.problem.isEmpty()) { // what is not searched is not without hits
            throw InputError(
                u"sequence %1: %2"_s.arg(QString::number(sequence.number + 1), here.problem).toStdString());
        }
        found.more = found.size() + static_cast<qint64>(here.tokens.size()) > most_found;
        if (found.more) {
            break;
        }
        const bool has = other && static_cast<std::size_t>(sequence.number) < other->sequences.size();
        const auto opposite = has ? read(*other, sequence.number) : nullptr;
        means.add(*block, opposite.get(), clusters.of(sequence), here.tokens);
        std::vector<std::int64_t> rows;
        for (const qint64 token : here.tokens) {
            ++found.classes[token_class(
                token_bytes(block->tokens, block->text, static_cast<std::size_t>(token)))];
            const qint64 row = attribution == Attribution::predicted ? token - 1 : token;
            if (row >= 0) {
                rows.push_back(row);
            }
        }
        if (!here.tokens.empty()) {
            found.counts[sequence.number] = static_cast<qint64>(here.tokens.size());
        }
        if (!rows.empty()) {
            found.rows[sequence.number] = std::move(rows);
        }
        ++done;
    }
    found.statistics = means.finish(own.run.max_steps, u"run"_s, stop);
    return found;
}

} // namespace ponderscope
