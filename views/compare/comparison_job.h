// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/compare/run_comparison.h"

#include <QObject>
#include <QString>

#include <memory>
#include <stop_token>
#include <thread>

namespace ponderscope {

/// One comparison on a thread of its own. Ends in `done` or `failed`, on the thread that made the job, or in
/// neither when it was cancelled. Destroying it cancels and waits, which takes no longer than one batch of
/// the bootstrap.
class ComparisonJob : public QObject {
    Q_OBJECT
public:
    explicit ComparisonJob(ComparisonRequest request, QObject* parent = nullptr);
    ~ComparisonJob() override;
    void cancel();

Q_SIGNALS:
    void progressed(int perMille);
    void done(std::shared_ptr<const ponderscope::RunComparison> comparison);
    void failed(const QString& sentence);

private:
    std::jthread thread_;
};

} // namespace ponderscope
