// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/engine_process.h"
#include "app/desktop/record_command.h"
#include "views/common/trace_data.h"

#include <QByteArray>
#include <QJsonArray>
#include <QJsonObject>
#include <QObject>
#include <QString>
#include <QTimer>

#include <memory>
#include <vector>

namespace ponderscope {

using Qt::StringLiterals::operator""_s;

/// Turns the lines of `ponderscope generate --json` into a run that views can show. Each line is a token with
/// its numbers. Skips invalid lines, and values of a signal whose shape has changed.
class LiveRunBuilder {
public:
    /// \p trace: name for TraceData.
    explicit LiveRunBuilder(QString trace) : trace_(std::move(trace)) {}

    enum class Event { nothing, started, token, recorded };
    Event read(const QByteArray& line);

    [[nodiscard]] qint64 tokens() const { return static_cast<qint64>(data_.tokens.size()); }
    [[nodiscard]] qint64 promptTokens() const { return promptTokens_; }
    /// Where the run was recorded, after Event::recorded.
    [[nodiscard]] QString recordedTrace() const { return recordedTrace_; }
    [[nodiscard]] QString recordedRun() const { return recordedRun_; }
    /// A copy of the run so far, for TraceData::showLive.
    [[nodiscard]] LiveRun run() const;

private:
    struct Signal {
        SignalInfo info;
        SignalChunk chunk;     ///< values of the tokens so far; of type F32 or I32
        std::size_t count = 0; ///< values per token; 0 until the first token
        /// Appends \p values, then missing values, until there are \p size values.
        void fill(std::size_t size, const QJsonArray& values = {});
    };
    void start(const QJsonObject& object);
    bool append(const QJsonObject& object);
    void addToken(const QJsonObject& token);
    void name(const QJsonObject& token);
    static void addSignal(Signal& signal, const QJsonObject& object, std::size_t row);

    QString trace_;
    RunInfo info_;
    SequenceInfo sequence_;
    SequenceData data_;
    std::vector<Signal> signals_;
    QHash<int, QString> labels_;
    qint64 promptTokens_ = 0;
    QString recordedTrace_;
    QString recordedRun_;
};

/// A generation in a child process. Adds every token to a live run of the window's data. At the end, also
/// after cancel(), the run is in a trace. After a fault, the tokens stay visible.
class Thinker : public EngineProcess {
    Q_OBJECT
public:
    explicit Thinker(TraceData& data, QObject* parent = nullptr);
    void start(const ThinkRequest& request);
    [[nodiscard]] RunKey key() const { return {name(), 1}; } ///< the live run
    [[nodiscard]] static QString name() { return u"live:thinking"_s; }
    [[nodiscard]] qint64 tokens() const { return run_ ? run_->tokens() : 0; }
    [[nodiscard]] qint64 promptTokens() const { return run_ ? run_->promptTokens() : 0; }
    /// Removes the live run, when a recorded run replaces it.
    void forget();

Q_SIGNALS:
    void began(); ///< the first token exists
    void grew(qint64 tokens);
    void recorded(const QString& trace, const QString& run);
    void failed(const char* id, const QString& sentence); ///< arguments as for MessageBar::show

private:
    void read(const QByteArray& line);
    void show();
    void end(EngineProcess::End end, const QString& sentence);

    TraceData& data_;
    QString trace_; ///< trace of the recording
    std::unique_ptr<LiveRunBuilder> run_;
    QTimer showing_; ///< delay, so that several tokens are painted together
    bool shown_ = false;
};

} // namespace ponderscope
