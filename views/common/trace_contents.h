// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "core/trace/training_records.h"

#include <QStringList>

#include <map>
#include <vector>

namespace ponderscope {

class TraceReader;

/// What one file holds, besides tokens and signals.
struct TraceContents {
    QStringList files; ///< that it is read from: itself, or its shards
    std::vector<RunInfo> runs;
    std::vector<TrainingInfo> trainings;
    std::map<qint64, std::vector<SequenceInfo>> sequences;
    std::map<qint64, std::vector<SignalInfo>> signalInfos;
    /// What went wrong while a run was recorded, and what is wrong with its annotations.
    std::map<qint64, std::vector<FaultInfo>> faults;
    qint64 annotationsStamp = 0; ///< of the file of annotations; another one: it was written again. 0: none
};

/// Reads all of it. InputError as TraceReader.
TraceContents read_contents(const TraceReader& reader);
/// Whether a view would show the same.
bool same_contents(const TraceContents& a, const TraceContents& b);

} // namespace ponderscope
