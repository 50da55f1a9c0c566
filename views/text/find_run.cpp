// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/find_run.h"

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "views/common/paths.h"
#include "views/common/trace_contents.h"
#include "views/text/find_query.h"

#include <numeric>
#include <optional>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

/// Places that are kept; more are no selection.
constexpr qint64 most_found = 2'000'000;

} // namespace

qint64 FoundInRun::size() const {
    return std::accumulate(counts.begin(), counts.end(), qint64{0},
                           [](qint64 sum, const auto& one) { return sum + one.second; });
}

FoundInRun find_in_run(const RunKey& run, const QString& query, Attribution attribution,
                       std::atomic<qint64>& done, const std::stop_token& stop) {
    const TraceReader reader = TraceReader::open(path_of(run.trace));
    const std::optional<AnnotationReader> annotations = open_annotations(reader);
    std::atomic<bool> stopped = false;
    const std::stop_callback stops(stop, [&stopped] { stopped = true; });
    FoundInRun found;
    for (const SequenceInfo& sequence : reader.sequences(run.run)) {
        const auto block = read_sequence(reader, annotations, run, sequence.number, nullptr, stopped);
        if (!block) {
            throw Cancelled();
        }
        const Found here = find_in(*block, query, attribution);
        if (query.startsWith(u'/') && !here.problem.isEmpty()) { // what is not searched is not without hits
            throw InputError(
                u"sequence %1: %2"_s.arg(QString::number(sequence.number + 1), here.problem).toStdString());
        }
        found.more = found.size() + static_cast<qint64>(here.tokens.size()) > most_found;
        if (found.more) {
            break;
        }
        for (const qint64 token : here.tokens) {
            ++found.counts[sequence.number];
            if (const qint64 row = attribution == Attribution::predicted ? token - 1 : token; row >= 0) {
                found.rows[sequence.number].push_back(row);
            }
        }
        ++done;
    }
    return found;
}

} // namespace ponderscope
