// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/record_command.h"

#include "app/desktop/engine_process.h"
#include "core/base/error.h"
#include "core/checkpoint/method_info.h"
#include "core/policy/policy_spec.h"
#include "views/common/paths.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QStandardPaths>

using namespace Qt::StringLiterals;

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
        return u"Start state: %1 is not a file; choose a safetensors file with initial_state."_s.arg(start);
    }
    return {};
}

void add_settings(QStringList& arguments, const RunSettings& settings) {
    if (settings.steps > 0) {
        arguments << u"--steps=%1"_s.arg(settings.steps);
    }
    if (!settings.kv.isEmpty()) {
        arguments << u"--kv="_s + settings.kv;
    }
    if (!settings.startState.isEmpty()) {
        arguments << u"--initial-state="_s + settings.startState;
    }
}

QString problem_of_checkpoint(const QString& folder) {
    if (folder.isEmpty()) {
        return u"Choose a checkpoint folder."_s;
    }
    if (is_elsewhere(folder)) {
        return {}; // its machine says what is wrong
    }
    const QFileInfo info(folder);
    if (!info.exists()) {
        return u"%1 does not exist."_s.arg(folder);
    }
    if (!info.isDir()) {
        return u"%1 is a file. Choose a checkpoint folder with config.json and *.safetensors."_s.arg(folder);
    }
    if (!QFileInfo::exists(folder + u"/config.json"_s)) {
        return u"%1 has no config.json. Choose a checkpoint folder with config.json and *.safetensors."_s.arg(
            folder);
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
        return u"Policy: %1"_s.arg(QString::fromUtf8(error.what()));
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
            return u"Type a prompt."_s;
        }
    } else {
        if (request.textFile.isEmpty()) {
            return u"Choose a text file."_s;
        }
        if (!is_elsewhere(request.textFile) && !QFileInfo(request.textFile).isFile()) {
            return u"%1 is not a file."_s.arg(request.textFile);
        }
    }
    if (request.stride > 0 && request.context > 0 && request.stride > request.context) {
        return u"The stride (%1) is larger than the context (%2)."_s.arg(request.stride).arg(request.context);
    }
    bool number = false;
    const int refreshes = request.jacobi.toInt(&number);
    if (!request.jacobi.isEmpty() && request.jacobi != QLatin1String("exact") && (!number || refreshes < 0)) {
        return u"Jacobi refreshes: expected a number from 0 or \"exact\", found \"%1\"."_s.arg(
            request.jacobi);
    }
    if (QString found = problem_of(request.settings, request.checkpoint); !found.isEmpty()) {
        return found;
    }
    if (QString found = problem_of_policy(request.policy); !found.isEmpty()) {
        return found;
    }
    if (request.trace.isEmpty()) {
        return u"Choose a trace to write."_s;
    }
    if (QString found = engine_command({}, record_arguments(request)).problem; !found.isEmpty()) {
        return found;
    }
    if (is_elsewhere(request.trace)) {
        return {};
    }
    const QFileInfo trace(request.trace);
    if (trace.isDir()) {
        return u"%1 is a folder. Name a file in it."_s.arg(request.trace);
    }
    const QFileInfo parent(trace.absolutePath());
    if (!parent.isDir()) {
        return u"The folder %1 does not exist."_s.arg(trace.absolutePath());
    }
    if (!(trace.exists() ? trace.isWritable() && parent.isWritable() : parent.isWritable())) {
        return u"There is no permission to write %1."_s.arg(request.trace);
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
    QStringList arguments{u"record"_s, request.checkpoint};
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
        option(u"--from"_s, request.fromRun);
    } else if (request.fromPrompt) {
        option(u"--prompt"_s, request.prompt);
    } else {
        option(holds_ids(request.textFile)     ? u"--ids"_s
               : holds_lines(request.textFile) ? u"--jsonl"_s
                                               : u"--text"_s,
               request.textFile);
    }
    option(u"--output"_s, request.trace);
    option(u"--method"_s, request.method);
    option(u"--policy"_s, request.policy);
    option(u"--force-steps"_s, request.forceSteps);
    option(u"--patch"_s, request.patch);
    if (!request.patch.isEmpty()) {
        arguments << u"--patched-only"_s;
    }
    add_settings(arguments, request.settings);
    option(u"--jacobi"_s, request.jacobi);
    for (const QString& source : request.ablated) {
        option(u"--ablate-source"_s, source);
    }
    option(u"--device"_s, request.device);
    option(u"--dtype"_s, request.dtype);
    option(u"--record"_s, request.level);
    option(u"--name"_s, request.name);
    number(u"--context"_s, request.context);
    number(u"--stride"_s, request.stride);
    number(u"--batch"_s, request.batch);
    option(u"--progress"_s, u"json"_s);
    return arguments;
}

QStringList as_typed(QStringList arguments) {
    arguments.removeAll(u"--progress=json"_s);
    arguments.removeAll(u"--json"_s);
    return arguments;
}

QString find_command_line_program() {
    const QString name = u"ponderscope"_s;
    const QString beside = QStandardPaths::findExecutable(name, {QCoreApplication::applicationDirPath()});
    return beside.isEmpty() ? QStandardPaths::findExecutable(name) : beside;
}

namespace {

constexpr qsizetype longest_name = 40;

} // namespace

QString problem_of(const ThinkRequest& request) {
    if (request.checkpoint.isEmpty()) {
        return u"Choose a checkpoint: a folder with config.json, *.safetensors and tokenizer.json."_s;
    }
    if (QString found = problem_of_checkpoint(request.checkpoint); !found.isEmpty()) {
        return found;
    }
    if (request.prompt.trimmed().isEmpty()) {
        return u"Type a prompt."_s;
    }
    return problem_of(request.settings, request.checkpoint);
}

QStringList generate_arguments(const ThinkRequest& request) {
    QStringList arguments{u"generate"_s, request.checkpoint};
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
    arguments << u"--progress=json"_s << u"--json"_s;
    return arguments;
}

} // namespace ponderscope
