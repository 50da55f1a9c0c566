// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/thinker.h"

#include "views/common/format.h"
#include "views/common/paths.h"

#include <QJsonDocument>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int frame_ms = 30;

} // namespace

Thinker::Thinker(TraceData& data, QObject* parent) : EngineProcess(parent), data_(data) {
    showing_.setSingleShot(true);
    showing_.setInterval(frame_ms);
    connect(&showing_, &QTimer::timeout, this, &Thinker::show);
    connect(this, &EngineProcess::outputLine, this, &Thinker::read);
    connect(this, &EngineProcess::ended, this, &Thinker::end);
}

void Thinker::start(const ThinkRequest& request) {
    QString problem =
        isRunning() ? u"The model is generating. Wait for it or stop it."_s : problem_of(request);
    if (problem.isEmpty()) {
        forget();
        trace_ = request.trace;
        run_ = std::make_unique<LiveRunBuilder>(name());
        problem = EngineProcess::start(generate_arguments(request));
    }
    if (!problem.isEmpty()) {
        Q_EMIT failed("generation.not-started", problem);
    }
}

void Thinker::forget() {
    showing_.stop();
    shown_ = false;
    data_.closeLive(name());
}

void Thinker::read(const QByteArray& line) {
    const LiveRunBuilder::Event event = run_->read(line);
    if (event == LiveRunBuilder::Event::recorded) {
        show();
        Q_EMIT recorded(is_elsewhere(trace_) ? trace_ : run_->recordedTrace(), run_->recordedRun());
    } else if (event != LiveRunBuilder::Event::nothing && !showing_.isActive()) {
        showing_.start();
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

void Thinker::end(End end, const QString& sentence) {
    if (showing_.isActive()) {
        show();
    }
    if (end == End::crashed) {
        Q_EMIT failed(
            "generation.died",
            tokens() > 0
                ? u"The engine ended unexpectedly. The %1 generated tokens stay on the screen, but no "
                  "trace contains them."_s.arg(tokens())
                : u"The engine ended unexpectedly before the first token."_s);
    } else if (!sentence.isEmpty()) {
        Q_EMIT failed(end == End::cut           ? "generation.cut"
                      : end == End::not_started ? "generation.not-started"
                                                : "generation.refused",
                      sentence);
    }
}

namespace {

constexpr float none = std::numeric_limits<float>::quiet_NaN();
/// The program prints no signal with more numbers per token than this.
constexpr std::int64_t most_values = 1 << 16;

std::string text_of(const QJsonObject& object, const char* key) {
    return object.value(QLatin1String(key)).toString().toStdString();
}

float number_of(const QJsonValue& value) {
    return value.isDouble() ? static_cast<float>(value.toDouble()) : none;
}

} // namespace

LiveRunBuilder::Event LiveRunBuilder::read(const QByteArray& line) {
    const QJsonObject object = QJsonDocument::fromJson(line).object();
    const QString event = object.value(QLatin1String("event")).toString();
    if (event == QLatin1String("start")) {
        start(object);
        return Event::started;
    }
    if (event == QLatin1String("token")) {
        return append(object) ? Event::token : Event::nothing;
    }
    if (event == QLatin1String("recorded")) {
        recordedTrace_ = object.value(QLatin1String("trace")).toString();
        recordedRun_ = object.value(QLatin1String("run")).toString();
        return Event::recorded;
    }
    return Event::nothing;
}

void LiveRunBuilder::start(const QJsonObject& object) {
    info_ = {};
    sequence_ = {};
    data_ = {};
    signals_.clear();
    labels_.clear();
    info_.id = 1;
    info_.checkpoint = text_of(object, "checkpoint");
    info_.name = info_.checkpoint.substr(info_.checkpoint.find_last_of('/') + 1);
    info_.architecture = text_of(object, "architecture");
    info_.method = text_of(object, "method");
    info_.depth_mixing = text_of(object, "depth_mixing");
    info_.policy = text_of(object, "policy");
    info_.scoring = text_of(object, "scoring");
    info_.device = text_of(object, "device");
    info_.dtype = text_of(object, "dtype");
    info_.text_source = "prompt";
    info_.max_steps = object.value(QLatin1String("max_steps")).toInteger();
    info_.layers = object.value(QLatin1String("layers")).toInteger();
    info_.vocab_size = object.value(QLatin1String("vocab_size")).toInteger();
    info_.sequences = 1;
    sequence_.run = 1;
    sequence_.title = text_of(object, "title");
    data_.run = {trace_, 1};
    promptTokens_ = object.value(QLatin1String("prompt_tokens")).toInteger();
    const QJsonArray infos = object.value(QLatin1String("signals")).toArray();
    for (const QJsonValue value : infos) {
        const QJsonObject one = value.toObject();
        Signal signal;
        signal.info.name = text_of(one, "name");
        signal.info.unit = text_of(one, "unit");
        signal.info.title = text_of(one, "title");
        signal.info.description = text_of(one, "description");
        const QJsonArray axes = one.value(QLatin1String("axes")).toArray();
        for (const QJsonValue axis : axes) {
            signal.info.axes.push_back(axis.toString().toStdString());
        }
        signal.info.dtype = dtype_from_name(text_of(one, "dtype")).value_or(DType::f32);
        signal.info.of_target = one.value(QLatin1String("of_target")).toBool();
        signal.chunk.dtype = is_real(signal.info.dtype) ? DType::f32 : DType::i32;
        signals_.push_back(std::move(signal));
    }
    addToken(object.value(QLatin1String("token")).toObject());
}

void LiveRunBuilder::name(const QJsonObject& token) {
    const int id = token.value(QLatin1String("id")).toInt();
    const QByteArray bytes = QByteArray::fromHex(token.value(QLatin1String("bytes")).toString().toLatin1());
    labels_.insert(id, bytes.isEmpty()
                           ? u"‹id %1›"_s.arg(id)
                           : visible_token({bytes.constData(), static_cast<std::size_t>(bytes.size())}));
}

void LiveRunBuilder::addToken(const QJsonObject& token) {
    name(token);
    TokenColumns& tokens = data_.tokens;
    tokens.id.push_back(token.value(QLatin1String("id")).toInt());
    tokens.begin.push_back(data_.text.size());
    if (!token.value(QLatin1String("special")).toBool()) {
        data_.text +=
            QByteArray::fromHex(token.value(QLatin1String("bytes")).toString().toLatin1()).toStdString();
    }
    tokens.end.push_back(data_.text.size());
    tokens.nll.push_back(none);
    tokens.entropy.push_back(none);
    tokens.max_probability.push_back(none);
    tokens.rank.push_back(0);
    tokens.steps.push_back(0);
    tokens.flops.push_back(0);
}

bool LiveRunBuilder::append(const QJsonObject& object) {
    const auto rows = data_.tokens.size();
    if (rows == 0 || object.value(QLatin1String("position")).toInteger(-1) != static_cast<qint64>(rows)) {
        return false;
    }
    // The row of the previous token holds the numbers, because that token computed them.
    const std::size_t row = rows - 1;
    TokenColumns& tokens = data_.tokens;
    tokens.nll[row] = number_of(object.value(QLatin1String("nll")));
    tokens.entropy[row] = number_of(object.value(QLatin1String("entropy")));
    tokens.max_probability[row] = number_of(object.value(QLatin1String("max_probability")));
    tokens.rank[row] = object.value(QLatin1String("rank")).toInt();
    tokens.steps[row] = std::clamp(object.value(QLatin1String("steps")).toInt(), 0,
                                   static_cast<int>(std::clamp<qint64>(info_.max_steps, 0, 1 << 20)));
    tokens.flops[row] = object.value(QLatin1String("flops")).toInteger();
    const QJsonArray names = object.value(QLatin1String("names")).toArray();
    for (const QJsonValue value : names) {
        name(value.toObject());
    }
    const QJsonObject values = object.value(QLatin1String("signals")).toObject();
    for (Signal& signal : signals_) {
        addSignal(signal, values.value(QString::fromStdString(signal.info.name)).toObject(), row);
    }
    addToken(object.value(QLatin1String("token")).toObject());
    if (!std::isnan(tokens.nll[row])) {
        ++sequence_.scored_tokens;
        sequence_.nll_sum += static_cast<double>(tokens.nll[row]);
        sequence_.steps_sum += tokens.steps[row];
    }
    return true;
}

void LiveRunBuilder::Signal::fill(std::size_t size, const QJsonArray& values) {
    const auto append = [this](auto value) {
        const auto bytes = std::as_bytes(std::span(&value, 1));
        chunk.data.insert(chunk.data.end(), bytes.begin(), bytes.end());
    };
    static_assert(sizeof(float) == sizeof(std::int32_t));
    for (qsizetype i = 0; chunk.data.size() < size * sizeof(float); ++i) {
        if (chunk.dtype == DType::i32) {
            append(static_cast<std::int32_t>(values.at(i).toInt(did_not_run)));
        } else {
            append(number_of(values.at(i)));
        }
    }
}

void LiveRunBuilder::addSignal(Signal& signal, const QJsonObject& object, std::size_t row) {
    const QJsonArray shape = object.value(QLatin1String("shape")).toArray();
    const QJsonArray values = object.value(QLatin1String("values")).toArray();
    if (signal.count == 0) {
        std::vector<std::int64_t> wanted{0}; // axis of tokens, which run() sets
        std::int64_t count = 1;
        for (qsizetype axis = 1; axis < shape.size(); ++axis) {
            wanted.push_back(shape[axis].toInteger());
            count = wanted.back() > 0 && wanted.back() <= most_values / count ? count * wanted.back() : 0;
        }
        if (shape.isEmpty() || count <= 0 || values.size() != count ||
            shape.size() != static_cast<qsizetype>(signal.info.axes.size())) {
            return;
        }
        signal.chunk.shape = std::move(wanted);
        signal.count = static_cast<std::size_t>(count);
        signal.fill(row * signal.count);
    }
    const bool fits = values.size() == static_cast<qsizetype>(signal.count);
    signal.fill((row + 1) * signal.count, fits ? values : QJsonArray());
}

LiveRun LiveRunBuilder::run() const {
    LiveRun live;
    live.info = info_;
    live.info.tokens = tokens();
    live.sequence = sequence_;
    live.sequence.tokens = tokens();
    live.tokens = std::make_shared<const SequenceData>(data_);
    live.labels = labels_;
    for (Signal signal : signals_) {
        if (signal.count > 0) {
            signal.fill(data_.tokens.size() * signal.count); // the last token has no values yet
            signal.chunk.shape[0] = tokens();
            live.signalInfos.push_back(signal.info);
            live.chunks[QString::fromStdString(signal.info.name)] =
                std::make_shared<const SignalChunk>(std::move(signal.chunk));
        }
    }
    return live;
}

} // namespace ponderscope
