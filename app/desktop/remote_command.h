// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

namespace ponderscope {

/// A verb as a program to start. Where its paths are names on another machine (ssh://host/path), it runs
/// there, through ssh, and the paths are that machine's.
struct EngineCommand {
    QString program;
    QStringList arguments;
    QString machine; ///< "ssh://host"; empty: this one
    QString problem; ///< why it cannot be started, a sentence
};

/// \p program runs \p arguments here.
EngineCommand engine_command(const QString& program, const QStringList& arguments);

} // namespace ponderscope
