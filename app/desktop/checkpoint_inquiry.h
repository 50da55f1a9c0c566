// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/engine_process.h"

#include <QStringList>

#include <memory>

class QJsonObject;

namespace ponderscope {

/// What the window needs of `ponderscope inspect --json` for a checkpoint folder.
struct CheckpointAbout {
    QString folder;
    QString architecture;
    QString method;         ///< the method in its config
    QStringList candidates; ///< several: the user must choose
    QString depthMixing;    ///< "none": without depth mixing
    qint64 maxSteps = 0;
    qint64 layers = 0;
    double parameters = 0;
    double memoryBytes = 0; ///< memory of a run in float32
    bool tokenizer = true;  ///< false: takes ids only
    QString tokenizerError; ///< why the tokenizer cannot be used
    QString notSupported;   ///< why the checkpoint cannot run; empty: it can
    QStringList notices;
    [[nodiscard]] bool ambiguous() const { return candidates.size() > 1; }
    /// "gpt_neox · ponderlm, 3 steps · 6 layers · 1.3 M parameters · about 210 MB in float32"
    [[nodiscard]] QString sentence() const;
};

/// Asks the command line program for a folder's content, in a separate process, so that an untrusted
/// checkpoint cannot crash the window. Only the newest request is answered.
class CheckpointInquiry : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;
    /// For tests: the program to start instead of the one beside this program.
    void setProgram(const QString& program) { program_ = program; }
    /// Ends with known or failed, unless another request follows.
    void ask(const QString& folder);
    void giveUp() { engine_.reset(); } ///< drops the request
    [[nodiscard]] bool isRunning() const { return engine_ != nullptr; }

Q_SIGNALS:
    void known(const ponderscope::CheckpointAbout& about);
    void failed(const QString& folder, const QString& sentence);

private:
    void read(const QString& folder, const QJsonObject& object);

    QString program_;
    std::unique_ptr<EngineProcess> engine_; ///< null: no request
};

} // namespace ponderscope
