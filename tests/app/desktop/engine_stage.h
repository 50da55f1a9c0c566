// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/app/desktop/desktop_stage.h"
#include "tests/support/tiny_checkpoint.h"

namespace ponderscope::testing {

using Qt::StringLiterals::operator""_s;

/// A window beside the real program, with a checkpoint and a text of its own to record.
struct EngineStage : Stage {
    explicit EngineStage(int lines) {
        TinyCheckpoint{.pondering_steps = 3}.write(folder.filePath(u"model"_s).toStdString());
        writeStory(lines);
        window.runs().recorder().setProgram(QStringLiteral(PONDERSCOPE_PROGRAM));
    }
    void writeStory(int lines) const {
        const QByteArray line =
            "The ferry was late, and nobody minded; the river was lower than last year.\n";
        write(u"story.txt"_s, line.repeated(lines));
    }
    /// Into trace(); the checkpoint by a relative name, as the trace will keep it.
    [[nodiscard]] bool record(const QString& policy, const QStringList& more = {}) const {
        QProcess engine;
        engine.setWorkingDirectory(folder.path());
        engine.start(QStringLiteral(PONDERSCOPE_PROGRAM),
                     QStringList{u"record"_s, u"model"_s, u"--text"_s, u"story.txt"_s, u"--policy"_s, policy,
                                 u"-o"_s, u"t.ponder"_s, u"--progress"_s, u"none"_s} +
                         more);
        return engine.waitForFinished(60'000) && engine.exitCode() == 0;
    }
    [[nodiscard]] QString trace() const { return folder.filePath(u"t.ponder"_s); }
};

} // namespace ponderscope::testing
