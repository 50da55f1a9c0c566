// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/rerun.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/checkpoint/method_info.h"
#include "core/trace/reader.h"
#include "core/trace/recorded_choices.h"
#include "views/common/paths.h"
#include "views/depth/ablation.h"

#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>

namespace ponderscope {

namespace {

/// [[1, 2], [3]]: what --ids reads.
std::string ids_of(const TraceReader& reader, std::int64_t run, const std::stop_token& stop) {
    constexpr std::int64_t slice = 1 << 16;
    std::string json = "[";
    for (const SequenceInfo& sequence : reader.sequences(run)) {
        json += json.size() > 1 ? ",\n[" : "[";
        bool first = true;
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += slice) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            for (const std::int32_t id : reader.tokens(run, sequence.number, begin, begin + slice).id) {
                json += (first ? "" : ",") + std::to_string(id);
                first = false;
            }
        }
        json += "]";
    }
    return json + "]\n";
}

/// A file or folder that a trace names: as it is named, else relative to the trace's folder or one above it;
/// empty when it is nowhere.
QString find_named(const QString& named, const QString& trace, bool (QFileInfo::*is)() const) {
    if (is_elsewhere(trace)) { // whether it is there, its machine says
        return named.isEmpty()          ? QString()
               : named.startsWith(u'/') ? machine_of(trace) + named
                                        : trace.section(u'/', 0, -2) + QStringLiteral("/.../") + named;
    }
    if (const QFileInfo here(named); (here.*is)()) {
        return here.absoluteFilePath();
    }
    if (QFileInfo(named).isAbsolute() || named.isEmpty()) {
        return {};
    }
    for (QDir folder = QFileInfo(trace).absoluteDir();; folder.cdUp()) {
        const QFileInfo candidate(folder, named);
        if ((candidate.*is)()) {
            return QDir::cleanPath(candidate.absoluteFilePath());
        }
        if (folder.isRoot()) {
            return {};
        }
    }
}

} // namespace

QString find_checkpoint(const RunInfo& run, const QString& trace) {
    return find_named(QString::fromStdString(run.checkpoint), trace, &QFileInfo::isDir);
}

RecordRequest rerun_request(const RunInfo& run, const QString& trace, const QString& policy,
                            const QString& kv) {
    RecordRequest request;
    request.checkpoint = find_checkpoint(run, trace);
    request.method = QString::fromStdString(run.method);
    request.policy = policy;
    if (const MethodInfo* method = method_info(run.method); method != nullptr && method->any_steps) {
        request.settings.steps = static_cast<int>(run.max_steps) + 1;
    }
    request.settings.kv = kv;
    request.settings.startState = QString::fromStdString(recorded_choices(run).initial_state);
    if (is_start_file(request.settings.startState)) {
        const QString file = find_named(request.settings.startState, trace, &QFileInfo::isFile);
        request.settings.startState = file.isEmpty() ? request.settings.startState : file;
    }
    // "jacobi:3"; "exact" is said where a method could be scored otherwise, too.
    const QString scoring = QString::fromStdString(run.scoring);
    if (scoring.startsWith(QLatin1String("jacobi:"))) {
        request.jacobi = scoring.mid(7);
    } else if (run.method == "ponderlm2" || run.method == "ponderlm3") {
        request.jacobi = QStringLiteral("exact");
    }
    for (const AblatedSource& one : ablated_sources(run)) {
        request.ablated << (one.layer ? QStringLiteral("%1:%2").arg(one.source).arg(*one.layer)
                                      : QString::number(one.source));
    }
    request.device = QString::fromStdString(run.device).section(u' ', 0, 0);
    request.dtype = QString::fromStdString(run.dtype);
    request.level = QString::fromStdString(run.record_level);
    request.name = QString::fromStdString(run.name) + u' ' + policy;
    request.context = static_cast<int>(run.context);
    request.stride = static_cast<int>(run.stride);
    request.trace = trace;
    return request;
}

void Rerun::start(const RunKey& key, const RunInfo& run, const QString& policy, const QString& checkpoint,
                  const QString& into) {
    if (const std::string why = why_no_rerun(run); !why.empty()) {
        Q_EMIT failed(QString::fromStdString(why));
        return;
    }
    if (is_elsewhere(key.trace)) { // the tokens are read where they lie
        RecordRequest there = rerun_request(run, key.trace, policy, QString::fromStdString(kv_of_rerun(run)));
        there.fromRun = key.trace + u'#' + QString::number(run.id);
        there.checkpoint = checkpoint;
        there.trace = into;
        Q_EMIT prepared(there);
        return;
    }
    auto folder = std::make_shared<QTemporaryDir>();
    if (!folder->isValid()) {
        Q_EMIT failed(
            tr("The tokens of the run could not be written for the rerun: %1.").arg(folder->errorString()));
        return;
    }
    QString name = QString::fromStdString(run.name);
    name.replace(QRegularExpression(QStringLiteral("[^A-Za-z0-9._-]+")), QStringLiteral("-"));
    const QString ids = folder->filePath(tr("tokens-of-%1.json").arg(name.left(80)));
    RecordRequest request = rerun_request(run, key.trace, policy, QString::fromStdString(kv_of_rerun(run)));
    request.textFile = ids;
    request.checkpoint = checkpoint;
    request.trace = into;
    work_.start(
        [key, ids](const std::stop_token& stop) {
            const TraceReader reader = TraceReader::open(path_of(key.trace));
            write_file_atomically(path_of(ids), ids_of(reader, key.run, stop));
            return true;
        },
        [this, request, folder](bool) {
            folder_ = folder;
            Q_EMIT prepared(request);
        },
        [this](const QString& sentence) { Q_EMIT failed(sentence); });
}

} // namespace ponderscope
