// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/record_command.h"

#include "app/desktop/engine_process.h"
#include "core/base/error.h"
#include "core/checkpoint/method_info.h"
#include "core/policy/policy_spec.h"
#include "views/common/paths.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QProcess>
#include <QStandardPaths>

#include <algorithm>

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

QString option_line(const QStringList& words) {
    QStringList quoted;
    for (const QString& word : words) {
        quoted << (word.contains(u' ') ? u'"' + word + u'"' : word);
    }
    return quoted.join(u' ');
}

QStringList option_words(const QString& line) {
    return QProcess::splitCommand(line);
}

QString about_options() {
    return u"Further options of the command line:\n--steps=N: number of recurrences, for a model whose "
           "steps share weights\n--kv=full, per_step, shared or skip: keys and values of a stopped "
           "token for later tokens\n--initial-state=random:SEED, zero or a file: first state of the "
           "recurrence\n--jacobi=N or exact: number of refreshes when ponderlm2 or ponderlm3 is scored\n"
           "--ablate-source=S or S:LAYER: source layer that depth attention leaves out"_s;
}

QString problem_of_options(const QStringList& words) {
    const auto wrong =
        std::find_if(words.begin(), words.end(), [](const QString& word) { return !word.startsWith(u"--"); });
    return wrong == words.end() ? QString()
                                : u"Options: expected options such as --kv=skip, found \"%1\"."_s.arg(*wrong);
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
    if (QString found = problem_of_options(request.more); !found.isEmpty()) {
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
        return u"%1 is a folder. Choose a file in the folder."_s.arg(request.trace);
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
    arguments += request.more;
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
    if (request.from.isEmpty() && request.prompt.trimmed().isEmpty()) {
        return u"Type a prompt."_s;
    }
    return problem_of_options(request.more);
}

QStringList generate_arguments(const ThinkRequest& request) {
    QStringList arguments{u"generate"_s, request.checkpoint};
    const auto option = [&arguments](const char* name, const QString& value) {
        if (!value.isEmpty()) {
            arguments << QLatin1String(name) + u'=' + value;
        }
    };
    if (request.from.isEmpty()) {
        option("--prompt", request.prompt);
    } else {
        option("--from", request.from);
        option("--sequence", QString::number(request.sequence));
        option("--at", QString::number(request.at));
        option("--force", QString::number(request.force));
    }
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
    arguments += request.more;
    option("--device", request.device);
    option("--output", request.trace);
    if (!request.trace.isEmpty()) {
        const QString name = request.prompt.simplified();
        option("--name", !request.name.isEmpty()      ? request.name
                         : name.size() > longest_name ? name.left(longest_name) + QChar(0x2026)
                                                      : name);
    }
    arguments << u"--progress=json"_s << u"--json"_s;
    return arguments;
}

} // namespace ponderscope
