// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/think_command.h"

#include "views/common/translated.h"

namespace ponderscope {

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
