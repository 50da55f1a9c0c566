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
class RunEdits;

/// Run A again with one thing changed: other steps for a token, a source of its depth attention left out, the
/// state of another token in its place.
class WhatIf : public ShellPart {
    Q_OBJECT
public:
    WhatIf(const Shell& shell, RunController& runs, RunEdits& edits)
        : ShellPart(shell), runs_(runs), edits_(edits) {}
    void fillWhatIf(QMenu& menu, qint64 token);

public Q_SLOTS:
    /// Runs A again with \p steps at this token; the difference is shown.
    void giveSteps(qint64 token, int steps);
    /// Runs A again without a source of its depth attention, in one layer or (-1) in all.
    void leaveSourceOut(int source, int layer);
    /// Keeps the place of a state of run A, to be carried elsewhere: after \p step of this token, in its end
    /// or (from 0) after a layer.
    void takeState(qint64 token, int step, int layer);
    /// Runs A again with the copied state in place of this token's state after \p step.
    void putState(qint64 token, int step);

private:
    struct WhatIfQuestion {
        QString forceSteps;      ///< "SEQUENCE/POSITION:STEPS", or empty
        QString ablate;          ///< "S" or "S:LAYER", or empty
        QString name;            ///< added to the patches of the run
        QJsonArray patches = {}; ///< states that are put in, as a patch file has them
    };
    void startWhatIf(const WhatIfQuestion& question);
    /// Writes a file with the patches of \p run and those in \p more. Empty path: there are none.
    /// std::nullopt, with a message: the file could not be written.
    [[nodiscard]] std::optional<QString> patchFile(const RunInfo& run, const QJsonArray& more);
    void fillCarry(QMenu& menu, qint64 token, const RunInfo& run, int ran, const QString& word);

    RunController& runs_;
    RunEdits& edits_;
    /// A state that was taken, to be put elsewhere.
    struct TakenState {
        RunKey run; ///< not valid: none
        qint64 sequence = 0, row = 0;
        int step = 0, layer = -1;
        QString word;
    };
    TakenState taken_;
    std::unique_ptr<QTemporaryDir> patchFolder_; ///< of the last patch file
};

} // namespace ponderscope
