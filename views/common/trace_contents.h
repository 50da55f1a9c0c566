// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <QStringList>

#include <memory>
#include <vector>

namespace ponderscope {

class TraceReader;

/// One run of a file, besides tokens and signals. Never changed: a run that grew gets another block.
struct RunContents {
    RunInfo info;
    std::vector<SequenceInfo> sequences; ///< by index
    std::vector<SignalInfo> signals;
    /// What went wrong while it was recorded, and what is wrong with its annotations.
    std::vector<FaultInfo> faults;
};

/// What one file holds.
struct TraceContents {
    QStringList files;                                    ///< that it is read from: itself, or its shards
    std::vector<std::shared_ptr<const RunContents>> runs; ///< by id
    std::vector<TrainingInfo> trainings;
    qint64 annotationsStamp = 0; ///< of the file of annotations; another one: it was written again. 0: none

    [[nodiscard]] std::shared_ptr<const RunContents> run(qint64 id) const; ///< null: unknown
};

/// Reads all of it. The block of a run that holds what it held \p before is that very block; of complete
/// runs only the number is read again. InputError as TraceReader.
TraceContents read_contents(const TraceReader& reader, const TraceContents& before = {});
/// Whether two trainings say the same.
bool same_trainings(const std::vector<TrainingInfo>& a, const std::vector<TrainingInfo>& b);

} // namespace ponderscope
