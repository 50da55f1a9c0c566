// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/checkpoint_inquiry.h"

#include "views/common/format.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

QStringList strings_of(const QJsonValue& value) {
    QStringList all;
    const QJsonArray array = value.toArray();
    for (const QJsonValue one : array) {
        all << one.toString();
    }
    return all;
}

} // namespace

QString CheckpointAbout::sentence() const {
    QStringList parts{architecture};
    if (ambiguous()) {
        parts << u"method not named: %1"_s.arg(candidates.join(u" or "_s));
    } else {
        parts << (maxSteps > 0 ? (maxSteps == 1 ? u"%1, 1 step"_s.arg(method)
                                                : u"%1, %2 steps"_s.arg(method, QString::number(maxSteps)))
                               : method);
    }
    if (!depthMixing.isEmpty() && depthMixing != QLatin1String("none")) {
        parts << depthMixing;
    }
    parts << u"%1 layers"_s.arg(layers) << u"%1 parameters"_s.arg(format_si(parameters))
          << u"about %1 in float32"_s.arg(format_bytes(static_cast<qint64>(memoryBytes)));
    if (!tokenizerError.isEmpty()) {
        parts << u"its tokenizer cannot be used: %1"_s.arg(tokenizerError);
    } else if (!tokenizer) {
        parts << u"no tokenizer: give it token ids"_s;
    }
    return parts.join(u" · "_s);
}

void CheckpointInquiry::ask(const QString& folder) {
    engine_ = std::make_unique<EngineProcess>();
    engine_->setProgram(program_);
    auto output = std::make_shared<QByteArray>();
    connect(engine_.get(), &EngineProcess::outputLine, this,
            [output](const QByteArray& line) { *output += line; });
    const auto fail = [this, folder](const QString& sentence) {
        Q_EMIT failed(folder,
                      sentence.isEmpty() ? u"%1 could not be read as a checkpoint."_s.arg(folder) : sentence);
    };
    const auto done = [this] { engine_.release()->deleteLater(); }; // it is emitting
    connect(engine_.get(), &EngineProcess::failedToStart, this, [done, fail](const QString& sentence) {
        done();
        fail(sentence);
    });
    connect(engine_.get(), &EngineProcess::ended, this,
            [this, folder, output, done, fail](EngineProcess::End end, const QString& sentence) {
                done();
                const QJsonObject object = QJsonDocument::fromJson(*output).object();
                end == EngineProcess::End::done&& object.value(u"kind").toString() == u"checkpoint"
                    ? read(folder, object)
                    : fail(sentence);
            });
    const QString problem = engine_->start({u"inspect"_s, u"--json"_s, folder});
    if (!problem.isEmpty()) {
        engine_.reset();
        fail(problem);
    }
}

void CheckpointInquiry::read(const QString& folder, const QJsonObject& object) {
    CheckpointAbout about;
    about.folder = folder;
    about.architecture = object.value(QLatin1String("architecture")).toString();
    about.method = object.value(QLatin1String("method")).toString();
    about.candidates = strings_of(object.value(QLatin1String("candidate_methods")));
    about.depthMixing = object.value(QLatin1String("depth_mixing")).toString();
    about.maxSteps = object.value(QLatin1String("max_steps")).toInteger();
    about.layers = object.value(QLatin1String("layers")).toInteger();
    about.parameters = object.value(QLatin1String("parameters")).toDouble();
    about.memoryBytes = object.value(QLatin1String("memory_float32_bytes")).toDouble();
    const QJsonValue tokenizer = object.value(QLatin1String("tokenizer"));
    about.tokenizer = tokenizer.isObject();
    about.tokenizerError = tokenizer.toObject().value(QLatin1String("error")).toString();
    about.notSupported = object.value(QLatin1String("not_supported")).toString();
    about.notices = strings_of(object.value(QLatin1String("notices")));
    Q_EMIT known(about);
}

} // namespace ponderscope
