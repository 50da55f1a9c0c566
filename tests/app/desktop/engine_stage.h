// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/app/desktop/desktop_stage.h"
#include "tests/support/tiny_checkpoint.h"

#include <QProcess>

namespace ponderscope::testing {

/// A window beside the real program, with a checkpoint and a text of its own to record.
struct EngineStage : Stage {
    explicit EngineStage(int lines) {
        TinyCheckpoint{.pondering_steps = 3}.write(folder.filePath(QStringLiteral("model")).toStdString());
        QFile text(folder.filePath(QStringLiteral("story.txt")));
        text.open(QIODevice::WriteOnly);
        for (int i = 0; i < lines; ++i) {
            text.write("The ferry was late, and nobody minded; the river was lower than last year.\n");
        }
        text.close();
        window.runs().recorder().setProgram(QStringLiteral(PONDERSCOPE_PROGRAM));
    }
    /// Into trace(); the checkpoint by a relative name, as the trace will keep it.
    [[nodiscard]] bool record(const QString& policy, const QStringList& more = {}) const {
        QProcess engine;
        engine.setWorkingDirectory(folder.path());
        engine.start(QStringLiteral(PONDERSCOPE_PROGRAM),
                     QStringList{QStringLiteral("record"), QStringLiteral("model"), QStringLiteral("--text"),
                                 QStringLiteral("story.txt"), QStringLiteral("--policy"), policy,
                                 QStringLiteral("-o"), QStringLiteral("t.ponder"),
                                 QStringLiteral("--progress"), QStringLiteral("none")} +
                         more);
        return engine.waitForFinished(60'000) && engine.exitCode() == 0;
    }
    [[nodiscard]] QString trace() const { return folder.filePath(QStringLiteral("t.ponder")); }
};

} // namespace ponderscope::testing
