// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/checkpoint_inquiry.h"

#include "app/desktop/record_command.h"
#include "app/desktop/remote_command.h"
#include "views/common/format.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

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
        parts << QObject::tr("its keys fit %1").arg(candidates.join(QObject::tr(" or ")));
    } else {
        parts << (maxSteps > 0
                      ? (maxSteps == 1 ? QObject::tr("%1, 1 step").arg(method)
                                       : QObject::tr("%1, %2 steps").arg(method, QString::number(maxSteps)))
                      : method);
    }
    if (!depthMixing.isEmpty() && depthMixing != QLatin1String("none")) {
        parts << depthMixing;
    }
    parts << QObject::tr("%1 layers").arg(layers) << QObject::tr("%1 parameters").arg(format_si(parameters))
          << QObject::tr("about %1 in float32").arg(format_bytes(static_cast<qint64>(memoryBytes)));
    if (!tokenizerError.isEmpty()) {
        parts << QObject::tr("its tokenizer cannot be used: %1").arg(tokenizerError);
    } else if (!tokenizer) {
        parts << QObject::tr("no tokenizer: give it token ids");
    }
    return parts.join(QStringLiteral(" · "));
}

CheckpointInquiry::CheckpointInquiry(QObject* parent) : QObject(parent) {}

CheckpointInquiry::~CheckpointInquiry() {
    giveUp();
}

void CheckpointInquiry::giveUp() {
    if (process_ != nullptr) {
        process_->disconnect(this);
        process_->kill();
        process_->waitForFinished(1000);
        process_->deleteLater();
        process_ = nullptr;
    }
}

void CheckpointInquiry::ask(const QString& folder) {
    giveUp();
    folder_ = folder;
    const QString program = program_.isEmpty() ? find_command_line_program() : program_;
    if (program.isEmpty()) {
        Q_EMIT failed(folder_, tr("The command line program 'ponderscope' was not found, so the checkpoint "
                                  "could not be looked at."));
        return;
    }
    process_ = new QProcess(this);
    connect(process_, &QProcess::finished, this, &CheckpointInquiry::end);
    connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) {
            const QString sentence =
                tr("%1 could not be started: %2").arg(process_->program(), process_->errorString());
            giveUp();
            Q_EMIT failed(folder_, sentence);
        }
    });
    const EngineCommand command =
        engine_command(program, {QStringLiteral("inspect"), QStringLiteral("--json"), folder});
    process_->setProgram(command.program);
    process_->setArguments(command.arguments);
    process_->setStandardInputFile(QProcess::nullDevice());
    process_->start();
}

void CheckpointInquiry::end(int code, QProcess::ExitStatus status) {
    const QByteArray output = process_->readAllStandardOutput();
    QString said = QString::fromUtf8(process_->readAllStandardError()).trimmed().section(u'\n', -1);
    process_->deleteLater();
    process_ = nullptr;
    if (said.startsWith(QLatin1String("ponderscope: "))) {
        said.remove(0, 13);
    }
    const QJsonObject object = QJsonDocument::fromJson(output).object();
    if (status != QProcess::NormalExit || code != 0 ||
        object.value(QLatin1String("kind")).toString() != QLatin1String("checkpoint")) {
        Q_EMIT failed(folder_,
                      said.isEmpty() ? tr("%1 could not be read as a checkpoint.").arg(folder_) : said);
        return;
    }
    CheckpointAbout about;
    about.folder = folder_;
    about.architecture = object.value(QLatin1String("architecture")).toString();
    about.method = object.value(QLatin1String("method")).toString();
    about.candidates = strings_of(object.value(QLatin1String("candidate_methods")));
    about.depthMixing = object.value(QLatin1String("depth_mixing")).toString();
    about.maxSteps = object.value(QLatin1String("max_steps")).toInteger();
    about.startState = object.value(QLatin1String("start_state")).toBool();
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
