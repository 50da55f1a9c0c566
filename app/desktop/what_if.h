// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/shell.h"

#include <QJsonArray>
#include <QTemporaryDir>

#include <memory>
#include <optional>

class QMenu;

namespace ponderscope {

class RunController;

/// Records run A again with one change: a token's number of steps, a removed source of depth attention, or a
/// replaced state.
class WhatIf : public ShellPart {
    Q_OBJECT
public:
    WhatIf(const Shell& shell, RunController& runs) : ShellPart(shell), runs_(runs) {}
    void fillWhatIf(QMenu& menu, qint64 token);

public Q_SLOTS:
    /// Reruns A with \p steps steps at this token, and shows the difference.
    void giveSteps(qint64 token, int steps);
    /// Reruns A without a source of its depth attention, in one layer or (-1) in all layers.
    void leaveSourceOut(int source, int layer);
    /// Remembers the location of a state in run A: this token, \p step, and a layer or the step's end (-1).
    void takeState(qint64 token, int step, int layer);
    /// Reruns A with the remembered state in place of this token's state after \p step.
    void putState(qint64 token, int step);

private:
    struct WhatIfQuestion {
        QString forceSteps;      ///< "SEQUENCE/POSITION:STEPS", or empty
        QString ablate;          ///< "S" or "S:LAYER", or empty
        QString name;            ///< added to the name of the run
        QJsonArray patches = {}; ///< patches in the form of a patch file
    };
    void startWhatIf(const WhatIfQuestion& question);
    /// Writes a file with the patches of \p run and the patches in \p more. Empty path: there are no patches.
    /// std::nullopt, with a message: the file could not be written.
    [[nodiscard]] std::optional<QString> patchFile(const RunInfo& run, const QJsonArray& more);
    /// A token's text for a menu.
    [[nodiscard]] QString wordAt(qint64 token) const;
    void fillCarry(QMenu& menu, qint64 token, const RunInfo& run, int ran, const QString& word);

    RunController& runs_;
    /// A copied state location.
    struct TakenState {
        RunKey run; ///< invalid: none
        qint64 sequence = 0, row = 0;
        int step = 0, layer = -1;
        QString word; ///< see wordAt
    };
    TakenState taken_;
    std::unique_ptr<QTemporaryDir> patchFolder_; ///< folder of the last patch file
};

} // namespace ponderscope
