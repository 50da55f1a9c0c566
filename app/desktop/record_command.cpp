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

constexpr qsizetype longest_name = 40;

/// Whether the file has token ids instead of text, by its name.
bool holds_ids(const QString& file) {
    return file.endsWith(u".json"_s, Qt::CaseInsensitive) ||
           file.endsWith(u".safetensors"_s, Qt::CaseInsensitive);
}

/// Whether the file is JSON Lines (also compressed), with a text in the field "text" of each line.
bool holds_lines(const QString& file) {
    return QFileInfo(file).fileName().contains(u".jsonl"_s, Qt::CaseInsensitive);
}

/// One sentence about missing files of a checkpoint folder, judged by file names only; empty: none.
QString problem_of_checkpoint(const QString& folder) {
    constexpr auto instead = "Choose a checkpoint folder with config.json and *.safetensors.";
    const QFileInfo info(folder);
    return folder.isEmpty()       ? u"Choose a checkpoint folder."_s
           : is_elsewhere(folder) ? QString() // the remote machine reports problems
           : !info.exists()       ? u"%1 does not exist."_s.arg(folder)
           : !info.isDir()        ? u"%1 is a file. %2"_s.arg(folder, QLatin1String(instead))
           : QFileInfo::exists(folder + u"/config.json"_s)
               ? QString()
               : u"%1 has no config.json. %2"_s.arg(folder, QLatin1String(instead));
}

QString problem_of_input(const RecordRequest& request) {
    if (!request.fromRun.isEmpty()) { // the run replaces the text
        return {};
    }
    if (request.fromPrompt) {
        return request.prompt.isEmpty() ? u"Type a prompt."_s : QString();
    }
    return request.textFile.isEmpty() ? u"Choose a text file."_s
           : is_elsewhere(request.textFile) || QFileInfo(request.textFile).isFile()
               ? QString()
               : u"%1 is not a file."_s.arg(request.textFile);
}

QString problem_of_options(const QStringList& words) {
    const auto wrong =
        std::ranges::find_if(words, [](const QString& word) { return !word.startsWith(u"--"); });
    return wrong == words.end() ? QString()
                                : u"Options: expected options such as --kv=skip, found \"%1\"."_s.arg(*wrong);
}

QString problem_of_policy(const QString& policy) {
    try {
        if (!policy.isEmpty()) {
            static_cast<void>(PolicySpec::parse(policy.toStdString()));
        }
        return {};
    } catch (const InputError& error) {
        return u"Policy: %1"_s.arg(QString::fromUtf8(error.what()));
    }
}

QString problem_of_trace(const QString& path) {
    const QFileInfo trace(path);
    const QFileInfo parent(trace.absolutePath());
    return path.isEmpty()       ? u"Choose a trace to write."_s
           : is_elsewhere(path) ? QString()
           : trace.isDir()      ? u"%1 is a folder. Choose a file in the folder."_s.arg(path)
           : !parent.isDir()    ? u"The folder %1 does not exist."_s.arg(parent.filePath())
           : !parent.isWritable() || (trace.exists() && !trace.isWritable())
               ? u"There is no permission to write %1."_s.arg(path)
               : QString();
}

QString first_of(const QStringList& problems) {
    const auto found =
        std::ranges::find_if(problems, [](const QString& problem) { return !problem.isEmpty(); });
    return found == problems.end() ? QString() : *found;
}

/// Appends options that have a value, each as one word "--name=value", because a value may begin with a dash.
void append(QStringList& arguments, std::initializer_list<std::pair<const char*, QString>> options) {
    for (const auto& [name, value] : options) {
        if (!value.isEmpty()) {
            arguments << QLatin1String(name) + u'=' + value;
        }
    }
}

/// Empty for zero, which means the program's default.
QString positive(int number) {
    return number > 0 ? QString::number(number) : QString();
}

} // namespace

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
           "steps share weights\n--kv=full, per_step, shared or skip: keys and values of a stopped token "
           "for later tokens\n--initial-state=random:SEED, zero or a file: first state of the recurrence\n"
           "--jacobi=N or exact: N Jacobi refreshes, or exact scoring, of ponderlm2 and ponderlm3\n"
           "--ablate-source=S or S:LAYER: source layer that depth attention leaves out"_s;
}

QString problem_of(const RecordRequest& request) {
    return first_of(
        {problem_of_checkpoint(request.checkpoint), problem_of_input(request),
         request.stride > 0 && request.context > 0 && request.stride > request.context
             ? u"The stride (%1) is larger than the context (%2)."_s.arg(request.stride).arg(request.context)
             : QString(),
         problem_of_options(request.more), problem_of_policy(request.policy),
         engine_command({}, record_arguments(request)).problem, problem_of_trace(request.trace)});
}

QStringList all_methods() {
    QStringList names;
    for (const MethodInfo& info : method_infos()) {
        names << QString::fromStdString(to_string(info.kind));
    }
    return names;
}

QStringList record_arguments(const RecordRequest& request) {
    const bool prompt = request.fromRun.isEmpty() && request.fromPrompt;
    const bool text = request.fromRun.isEmpty() && !request.fromPrompt;
    const char* kind = holds_ids(request.textFile)     ? "--ids"
                       : holds_lines(request.textFile) ? "--jsonl"
                                                       : "--text";
    QStringList arguments{u"record"_s, request.checkpoint};
    append(arguments, {{"--from", request.fromRun},
                       {"--prompt", prompt ? request.prompt : QString()},
                       {kind, text ? request.textFile : QString()},
                       {"--output", request.trace},
                       {"--method", request.method},
                       {"--policy", request.policy},
                       {"--force-steps", request.forceSteps},
                       {"--patch", request.patch}});
    if (!request.patch.isEmpty()) {
        arguments << u"--patched-only"_s;
    }
    arguments += request.more;
    append(arguments, {{"--device", request.device},
                       {"--dtype", request.dtype},
                       {"--record", request.level},
                       {"--name", request.name},
                       {"--context", positive(request.context)},
                       {"--stride", positive(request.stride)},
                       {"--batch", positive(request.batch)},
                       {"--progress", u"json"_s}});
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

QString problem_of(const ThinkRequest& request) {
    return first_of(
        {problem_of_checkpoint(request.checkpoint),
         request.from.isEmpty() && request.prompt.trimmed().isEmpty() ? u"Type a prompt."_s : QString(),
         problem_of_options(request.more)});
}

QStringList generate_arguments(const ThinkRequest& request) {
    QStringList arguments{u"generate"_s, request.checkpoint};
    if (request.from.isEmpty()) {
        append(arguments, {{"--prompt", request.prompt}});
    } else {
        append(arguments, {{"--from", request.from},
                           {"--sequence", QString::number(request.sequence)},
                           {"--at", QString::number(request.at)},
                           {"--force", QString::number(request.force)}});
    }
    append(arguments, {{"--tokens", QString::number(request.tokens)}});
    if (request.temperature > 0) {
        append(arguments, {{"--temperature", QString::number(request.temperature)},
                           {"--top-k", positive(request.topK)},
                           {"--top-p", QString::number(request.topP)},
                           {"--seed", QString::number(request.seed)}});
    }
    append(arguments, {{"--policy", request.policy}});
    arguments += request.more;
    const QString prompt = request.prompt.simplified();
    const QString name = prompt.size() > longest_name ? prompt.left(longest_name) + QChar(0x2026) : prompt;
    append(arguments, {{"--device", request.device},
                       {"--output", request.trace},
                       {"--name", request.trace.isEmpty()  ? QString()
                                  : request.name.isEmpty() ? name
                                                           : request.name},
                       {"--progress", u"json"_s}});
    return arguments << u"--json"_s;
}

} // namespace ponderscope
