// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/record_command.h"

#include "app/desktop/engine_process.h"
#include "core/base/error.h"
#include "core/checkpoint/method_info.h"
#include "core/policy/policy_spec.h"
#include "views/common/paths.h"
#include "views/common/translated.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QStandardPaths>

namespace ponderscope {

namespace {

/// JSON Lines, packed or not: a text in each line's field "text".
bool holds_lines(const QString& file) {
    return QFileInfo(file).fileName().contains(QLatin1String(".jsonl"), Qt::CaseInsensitive);
}

} // namespace

bool holds_ids(const QString& file) {
    return file.endsWith(QLatin1String(".json"), Qt::CaseInsensitive) ||
           file.endsWith(QLatin1String(".safetensors"), Qt::CaseInsensitive);
}

bool is_start_file(const QString& start) {
    return !start.isEmpty() && start != QLatin1String("zero") && start != QLatin1String("random") &&
           !start.startsWith(QLatin1String("random:"));
}

QString problem_of(const RunSettings& settings, const QString& checkpoint) {
    const QString& start = settings.startState;
    if (is_start_file(start) && !is_elsewhere(checkpoint) && !QFileInfo(checkpoint + u'/' + start).isFile() &&
        !QFileInfo(start).isFile()) {
        return tr("Start state: %1 is not a file; choose a safetensors file with initial_state.").arg(start);
    }
    return {};
}

void add_settings(QStringList& arguments, const RunSettings& settings) {
    if (settings.steps > 0) {
        arguments << QStringLiteral("--steps=%1").arg(settings.steps);
    }
    if (!settings.kv.isEmpty()) {
        arguments << QStringLiteral("--kv=") + settings.kv;
    }
    if (!settings.startState.isEmpty()) {
        arguments << QStringLiteral("--initial-state=") + settings.startState;
    }
}

QString problem_of_checkpoint(const QString& folder) {
    if (folder.isEmpty()) {
        return tr("Choose a checkpoint folder.");
    }
    if (is_elsewhere(folder)) {
        return {}; // its machine says what is wrong
    }
    const QFileInfo info(folder);
    if (!info.exists()) {
        return tr("%1 does not exist.").arg(folder);
    }
    if (!info.isDir()) {
        return tr("%1 is a file. Choose a checkpoint folder with config.json and *.safetensors.").arg(folder);
    }
    if (!QFileInfo::exists(folder + QStringLiteral("/config.json"))) {
        return tr("%1 has no config.json. Choose a checkpoint folder with config.json and *.safetensors.")
            .arg(folder);
    }
    return {};
}

QString problem_of_policy(const QString& policy) {
    if (policy.isEmpty()) {
        return {};
    }
    try {
        static_cast<void>(PolicySpec::parse(policy.toStdString()));
        return {};
    } catch (const InputError& error) {
        return tr("Policy: %1").arg(QString::fromUtf8(error.what()));
    }
}

QString problem_of(const RecordRequest& request) {
    if (QString found = problem_of_checkpoint(request.checkpoint); !found.isEmpty()) {
        return found;
    }
    if (!request.fromRun.isEmpty()) {
        // the run says what is read
    } else if (request.fromPrompt) {
        if (request.prompt.isEmpty()) {
            return tr("Type a prompt.");
        }
    } else {
        if (request.textFile.isEmpty()) {
            return tr("Choose a text file.");
        }
        if (!is_elsewhere(request.textFile) && !QFileInfo(request.textFile).isFile()) {
            return tr("%1 is not a file.").arg(request.textFile);
        }
    }
    if (request.stride > 0 && request.context > 0 && request.stride > request.context) {
        return tr("The stride (%1) is larger than the context (%2).")
            .arg(request.stride)
            .arg(request.context);
    }
    bool number = false;
    const int refreshes = request.jacobi.toInt(&number);
    if (!request.jacobi.isEmpty() && request.jacobi != QLatin1String("exact") && (!number || refreshes < 0)) {
        return tr("Jacobi refreshes: expected a number from 0 or \"exact\", found \"%1\".")
            .arg(request.jacobi);
    }
    if (QString found = problem_of(request.settings, request.checkpoint); !found.isEmpty()) {
        return found;
    }
    if (QString found = problem_of_policy(request.policy); !found.isEmpty()) {
        return found;
    }
    if (request.trace.isEmpty()) {
        return tr("Choose a trace to write.");
    }
    if (QString found = engine_command({}, record_arguments(request)).problem; !found.isEmpty()) {
        return found;
    }
    if (is_elsewhere(request.trace)) {
        return {};
    }
    const QFileInfo trace(request.trace);
    if (trace.isDir()) {
        return tr("%1 is a folder. Name a file in it.").arg(request.trace);
    }
    const QFileInfo parent(trace.absolutePath());
    if (!parent.isDir()) {
        return tr("The folder %1 does not exist.").arg(trace.absolutePath());
    }
    if (!(trace.exists() ? trace.isWritable() && parent.isWritable() : parent.isWritable())) {
        return tr("There is no permission to write %1.").arg(request.trace);
    }
    return {};
}

QStringList all_methods() {
    QStringList names;
    for (const MethodInfo& info : method_infos()) {
        names << QString::fromStdString(to_string(info.kind));
    }
    return names;
}

QStringList record_arguments(const RecordRequest& request) {
    QStringList arguments{QStringLiteral("record"), request.checkpoint};
    const auto option = [&arguments](const QString& name, const QString& value) {
        if (!value.isEmpty()) {
            // Name and value form one word: a value that begins with a dash is then not taken for an option.
            arguments << name + u'=' + value;
        }
    };
    const auto number = [&option](const QString& name, int value) {
        if (value > 0) {
            option(name, QString::number(value));
        }
    };
    if (!request.fromRun.isEmpty()) {
        option(QStringLiteral("--from"), request.fromRun);
    } else if (request.fromPrompt) {
        option(QStringLiteral("--prompt"), request.prompt);
        number(QStringLiteral("--generate"), request.generate);
    } else {
        option(holds_ids(request.textFile)     ? QStringLiteral("--ids")
               : holds_lines(request.textFile) ? QStringLiteral("--jsonl")
                                               : QStringLiteral("--text"),
               request.textFile);
    }
    option(QStringLiteral("--output"), request.trace);
    option(QStringLiteral("--method"), request.method);
    option(QStringLiteral("--policy"), request.policy);
    option(QStringLiteral("--force-steps"), request.forceSteps);
    option(QStringLiteral("--patch"), request.patch);
    if (!request.patch.isEmpty()) {
        arguments << QStringLiteral("--patched-only");
    }
    add_settings(arguments, request.settings);
    option(QStringLiteral("--jacobi"), request.jacobi);
    for (const QString& source : request.ablated) {
        option(QStringLiteral("--ablate-source"), source);
    }
    option(QStringLiteral("--device"), request.device);
    option(QStringLiteral("--dtype"), request.dtype);
    option(QStringLiteral("--record"), request.level);
    option(QStringLiteral("--name"), request.name);
    number(QStringLiteral("--context"), request.context);
    number(QStringLiteral("--stride"), request.stride);
    number(QStringLiteral("--batch"), request.batch);
    option(QStringLiteral("--progress"), QStringLiteral("json"));
    return arguments;
}

QStringList as_typed(QStringList arguments) {
    arguments.removeAll(QStringLiteral("--progress=json"));
    arguments.removeAll(QStringLiteral("--json"));
    return arguments;
}

QString find_command_line_program() {
    const QString name = QStringLiteral("ponderscope");
    const QString beside = QStandardPaths::findExecutable(name, {QCoreApplication::applicationDirPath()});
    return beside.isEmpty() ? QStandardPaths::findExecutable(name) : beside;
}

namespace {

constexpr qsizetype longest_name = 40;

} // namespace

QString problem_of(const ThinkRequest& request) {
    if (request.checkpoint.isEmpty()) {
        return tr("Choose a checkpoint: a folder with config.json, *.safetensors and tokenizer.json.");
    }
    if (QString found = problem_of_checkpoint(request.checkpoint); !found.isEmpty()) {
        return found;
    }
    if (request.prompt.trimmed().isEmpty()) {
        return tr("Type a prompt.");
    }
    return problem_of(request.settings, request.checkpoint);
}

QStringList generate_arguments(const ThinkRequest& request) {
    QStringList arguments{QStringLiteral("generate"), request.checkpoint};
    const auto option = [&arguments](const char* name, const QString& value) {
        if (!value.isEmpty()) {
            arguments << QLatin1String(name) + u'=' + value;
        }
    };
    option("--prompt", request.prompt);
    option("--tokens", QString::number(request.tokens));
    if (request.temperature > 0) {
        option("--temperature", QString::number(request.temperature));
        if (request.topK > 0) {
            option("--top-k", QString::number(request.topK));
        }
        option("--top-p", QString::number(request.topP));
        option("--seed", QString::number(request.seed));
    }
    option("--policy", request.policy);
    add_settings(arguments, request.settings);
    option("--device", request.device);
    option("--output", request.trace);
    if (!request.trace.isEmpty()) {
        const QString name = request.prompt.simplified();
        option("--name", name.size() > longest_name ? name.left(longest_name) + QChar(0x2026) : name);
    }
    arguments << QStringLiteral("--progress=json") << QStringLiteral("--json");
    return arguments;
}

} // namespace ponderscope
