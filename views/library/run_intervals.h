// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"

#include <QObject>

#include <memory>

namespace ponderscope {

struct RunInfo;

/// Half-widths of the 95 % intervals of runs' mean NLL (bootstrap over clusters or blocks, as in core/stats),
/// worked out on a thread of its own from the files, one run after the other, and remembered.
class RunIntervals : public QObject {
    Q_OBJECT
public:
    explicit RunIntervals(QObject* parent = nullptr);
    ~RunIntervals() override;

    /// Nats; NaN while it is not known (then `ready` follows), or when the run is still being recorded, too
    /// large to read along the way, or damaged.
    [[nodiscard]] double halfWidth(const RunKey& key, const RunInfo& run);
    /// Why there is none though the run was read: a sample too small for one. Empty otherwise.
    [[nodiscard]] QString whyNone(const RunKey& key, const RunInfo& run) const;

Q_SIGNALS:
    void ready(const ponderscope::RunKey& key);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ponderscope
