// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/thinker.h"

#include "views/common/paths.h"

namespace ponderscope {

namespace {

constexpr int frame_ms = 30;

} // namespace

Thinker::Thinker(TraceData& data, QObject* parent) : QObject(parent), data_(data) {
    showing_.setSingleShot(true);
    showing_.setInterval(frame_ms);
    connect(&showing_, &QTimer::timeout, this, &Thinker::show);
    connect(&engine_, &EngineProcess::started, this, &Thinker::started);
    connect(&engine_, &EngineProcess::outputLine, this, &Thinker::read);
    connect(&engine_, &EngineProcess::ended, this, &Thinker::end);
    connect(&engine_, &EngineProcess::failedToStart, this, [this](const QString& sentence) {
        Q_EMIT failed("generation.not-started", sentence);
        Q_EMIT ended();
    });
}

void Thinker::start(const ThinkRequest& request) {
    QString problem =
        isRunning() ? tr("The model is generating. Wait for it or stop it.") : problem_of(request);
    if (problem.isEmpty()) {
        forget();
        trace_ = request.trace;
        run_ = std::make_unique<LiveRunBuilder>(name());
        problem = engine_.start(generate_arguments(request));
    }
    if (!problem.isEmpty()) {
        Q_EMIT failed("generation.not-started", problem);
    }
}

void Thinker::cancel() {
    engine_.cancel();
}

void Thinker::forget() {
    showing_.stop();
    shown_ = false;
    data_.closeLive(name());
}

void Thinker::read(const QByteArray& line) {
    switch (run_->read(line)) {
    case LiveRunBuilder::Event::started:
    case LiveRunBuilder::Event::token:
        if (!showing_.isActive()) {
            showing_.start();
        }
        break;
    case LiveRunBuilder::Event::recorded:
        show();
        Q_EMIT recorded(is_elsewhere(trace_) ? trace_ : run_->recordedTrace(), run_->recordedRun());
        break;
    case LiveRunBuilder::Event::nothing:
        break;
    }
}

void Thinker::show() {
    showing_.stop();
    if (run_->tokens() == 0) {
        return;
    }
    data_.showLive(name(), run_->run());
    if (!shown_) {
        shown_ = true;
        Q_EMIT began();
    }
    Q_EMIT grew(run_->tokens());
}

void Thinker::end(EngineProcess::End end, const QString& sentence) {
    if (showing_.isActive()) {
        show();
    }
    if (end == EngineProcess::End::crashed) {
        Q_EMIT failed(
            "generation.died",
            tokens() > 0
                ? tr("The engine ended unexpectedly. Its %1 tokens stay on the screen but are in no trace.")
                      .arg(tokens())
                : tr("The engine ended unexpectedly before its first token."));
    } else if (end == EngineProcess::End::refused || end == EngineProcess::End::cut) {
        Q_EMIT failed(end == EngineProcess::End::cut ? "generation.cut" : "generation.refused", sentence);
    }
    Q_EMIT ended();
}

} // namespace ponderscope
