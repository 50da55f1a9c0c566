// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/remote_command.h"

#include "core/base/error.h"
#include "core/remote/address.h"
#include "views/common/trace_name.h"
#include "views/common/translated.h"

#include <array>

namespace ponderscope {

namespace {

/// Options whose value names a file that is read or written.
constexpr std::array path_options{"--text",   "--jsonl", "--ids",          "--patch",
                                  "--output", "--from",  "--initial-state"};

} // namespace

EngineCommand engine_command(const QString& program, const QStringList& arguments) {
    EngineCommand command{program, arguments, {}, {}};
    std::vector<std::string> there{"serve", "--"};
    QString here; // a path of this machine
    remote::Address address;
    for (const QString& argument : arguments) {
        const qsizetype equals = argument.startsWith(QLatin1String("--")) ? argument.indexOf(u'=') : -1;
        const QString value = argument.mid(equals + 1);
        const bool path =
            equals < 0 ? !argument.startsWith(u'-') && argument != arguments.first()
                       : std::any_of(path_options.begin(), path_options.end(), [&](const char* option) {
                             return argument.left(equals) == QLatin1String(option);
                         });
        if (!path || !is_elsewhere(value)) {
            // random, zero and the like are no paths
            here = path && value.contains(u'/') ? value : here;
            there.push_back(argument.toStdString());
            continue;
        }
        try {
            const remote::Address one = remote::parse_address(value.toStdString());
            const QString machine = QString::fromStdString(one.machine());
            if (!command.machine.isEmpty() && machine != command.machine) {
                command.problem = tr("%1 and %2 are two machines; what a run reads and writes lies on one.")
                                      .arg(command.machine, machine);
            }
            command.machine = machine;
            address = one;
            there.push_back(argument.left(equals + 1).toStdString() + one.path);
        } catch (const InputError& error) {
            command.problem = QString::fromUtf8(error.what());
        }
    }
    if (command.machine.isEmpty()) {
        return command;
    }
    if (!here.isEmpty() && command.problem.isEmpty()) {
        command.problem =
            tr("%1 lies on this machine, and the run is made on %2; copy it there and name it as "
               "%2/…")
                .arg(here, command.machine);
    }
    command.arguments.clear();
    for (const std::string& word : remote::ssh_command(address, there)) {
        command.arguments << QString::fromStdString(word);
    }
    command.program = command.arguments.takeFirst();
    return command;
}

} // namespace ponderscope
