// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/engine_process.h"

#include <QStringList>

#include <memory>

class QJsonObject;

namespace ponderscope {

/// The part of `ponderscope inspect --json` of a checkpoint folder that the window needs.
struct CheckpointAbout {
    QString folder;
    QString architecture;
    QString method;         ///< the one that its config names
    QStringList candidates; ///< several: the user chooses
    QString depthMixing;    ///< "none" without
    qint64 maxSteps = 0;
    qint64 layers = 0;
    double parameters = 0;
    double memoryBytes = 0; ///< of a run in float32
    bool tokenizer = true;  ///< false: runs on ids only
    QString tokenizerError; ///< why it cannot be used
    QString notSupported;   ///< why it cannot be run; empty: it can
    QStringList notices;
    [[nodiscard]] bool ambiguous() const { return candidates.size() > 1; }
    /// "gpt_neox · ponderlm, 3 steps · 6 layers · 1.3 M parameters · about 210 MB in float32"
    [[nodiscard]] QString sentence() const;
};

/// Asks the command line program what a folder holds, in a process of its own: reading a checkpoint from a
/// stranger must not be able to take the window with it. The newest question counts.
class CheckpointInquiry : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;
    /// The program that is started instead of the one beside this; for tests.
    void setProgram(const QString& program) { program_ = program; }
    /// Ends in known or failed, unless another folder is asked about first.
    void ask(const QString& folder);
    void giveUp() { engine_.reset(); } ///< no answer comes
    [[nodiscard]] bool isRunning() const { return engine_ != nullptr; }

Q_SIGNALS:
    void known(const ponderscope::CheckpointAbout& about);
    void failed(const QString& folder, const QString& sentence);

private:
    void read(const QString& folder, const QJsonObject& object);

    QString program_;
    std::unique_ptr<EngineProcess> engine_; ///< null: nothing is asked
};

} // namespace ponderscope
