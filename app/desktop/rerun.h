// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/record_command.h"
#include "core/trace/records.h"
#include "views/common/task.h"
#include "views/common/selection.h"

#include <QTemporaryDir>

#include <memory>

namespace ponderscope {

/// The recording that repeats a run with another policy: the same checkpoint, windows, precision, steps and
/// start state. \p kv: what later tokens see of one that stopped. The text is left open.
RecordRequest rerun_request(const RunInfo& run, const QString& trace, const QString& policy,
                            const QString& kv);

/// The checkpoint folder of a run: as it is named, else relative to the trace's folder or one above it; empty
/// when it is nowhere.
QString find_checkpoint(const RunInfo& run, const QString& trace);

/// Prepares the exact rerun of a policy on a recorded run: the token ids come from the trace, so the text
/// file is not needed. GUI thread.
class Rerun : public QObject {
    Q_OBJECT
public:
    explicit Rerun(QObject* parent = nullptr) : QObject(parent), work_(this) {}

    /// Emits prepared or failed. A second start cancels the first. \p checkpoint: its
    /// folder now. \p into: the trace of the new run.
    void start(const RunKey& key, const RunInfo& run, const QString& policy, const QString& checkpoint,
               const QString& into);

Q_SIGNALS:
    /// The request of `ponderscope record`.
    void prepared(const ponderscope::RecordRequest& request);
    void failed(const QString& sentence);

private:
    Task work_;
    std::shared_ptr<QTemporaryDir> folder_; ///< of the token ids, until the next rerun
};

} // namespace ponderscope
