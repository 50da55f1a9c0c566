// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"

#include <QByteArray>
#include <QJsonObject>
#include <QString>

#include <vector>

namespace ponderscope {

/// Turns the lines of `ponderscope generate --json` into a run that the views show: a token a line, with what
/// was computed for it. What does not fit (a line of another program, a shape that changes) is left out and
/// never shown as something else.
class LiveRunBuilder {
public:
    /// \p trace: the name under which TraceData will know it.
    explicit LiveRunBuilder(QString trace) : trace_(std::move(trace)) {}

    enum class Event { nothing, started, token, recorded };
    Event read(const QByteArray& line);

    [[nodiscard]] qint64 tokens() const { return static_cast<qint64>(data_.tokens.size()); }
    [[nodiscard]] qint64 promptTokens() const { return promptTokens_; }
    [[nodiscard]] QString trace() const { return trace_; }
    /// Of the event `recorded`.
    [[nodiscard]] QString recordedTrace() const { return recordedTrace_; }
    [[nodiscard]] QString recordedRun() const { return recordedRun_; }
    /// A copy of all so far, for TraceData::showLive.
    [[nodiscard]] LiveRun run() const;

private:
    struct Signal {
        SignalInfo info;
        bool integers = false;
        std::vector<std::int64_t> shape; ///< of one token; empty until the first came
        std::size_t count = 0;           ///< values a token
        std::vector<float> floats;
        std::vector<std::int32_t> ints;
    };
    void start(const QJsonObject& object);
    bool append(const QJsonObject& object);
    void addToken(const QJsonObject& token);
    void name(const QJsonObject& token);
    void addSignal(Signal& signal, const QJsonObject& object, std::size_t row);

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

} // namespace ponderscope
