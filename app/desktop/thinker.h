// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/engine_process.h"
#include "app/desktop/live_run.h"
#include "app/desktop/record_command.h"

#include <QObject>
#include <QTimer>

#include <memory>

namespace ponderscope {

/// A model that thinks in a child process, shown in all views while it does: every token becomes part of a
/// live run of the window's data. The run lies in a trace in the end; what was said before a fault stays on
/// the screen.
class Thinker : public QObject {
    Q_OBJECT
public:
    explicit Thinker(TraceData& data, QObject* parent = nullptr);

    void setProgram(const QString& program) { engine_.setProgram(program); }
    void start(const ThinkRequest& request);
    [[nodiscard]] bool isRunning() const { return engine_.isRunning(); }
    [[nodiscard]] RunKey key() const { return {name(), 1}; } ///< of the run that is shown while it thinks
    [[nodiscard]] static QString name() { return QStringLiteral("live:thinking"); }
    [[nodiscard]] qint64 tokens() const { return run_ ? run_->tokens() : 0; }
    [[nodiscard]] qint64 promptTokens() const { return run_ ? run_->promptTokens() : 0; }
    /// Takes the live run from the views; when it has a recorded one to stand for it.
    void forget();

public Q_SLOTS:
    void cancel(); ///< what was said so far is recorded

Q_SIGNALS:
    void started(); ///< the process runs; weights are being read
    void began();   ///< the first token is there
    void grew(qint64 tokens);
    void recorded(const QString& trace, const QString& run);
    void ended(); ///< however it did; after everything else
    void failed(const char* id, const QString& sentence); ///< as MessageBar::show

private:
    void read(const QByteArray& line);
    void show();
    void end(EngineProcess::End end, const QString& sentence);

    TraceData& data_;
    QString trace_; ///< that is recorded into
    EngineProcess engine_;
    std::unique_ptr<LiveRunBuilder> run_;
    QTimer showing_; ///< many tokens a frame are one picture
    bool shown_ = false;
};

} // namespace ponderscope
