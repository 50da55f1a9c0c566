// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFileInfo>
#include <QString>

namespace ponderscope {

/// Whether a trace or a folder lies on another machine (core/remote/address.h): its name begins with ssh://.
inline bool is_elsewhere(const QString& name) {
    return name.startsWith(QLatin1String("ssh://"));
}

/// "ssh://host" of a name there; empty: it is of this machine.
inline QString machine_of(const QString& name) {
    return is_elsewhere(name) ? name.section(u'/', 0, 2) : QString();
}

/// What a trace is called everywhere in the window.
inline QString absolute_name(const QString& name) {
    return is_elsewhere(name) ? name : QFileInfo(name).absoluteFilePath();
}

} // namespace ponderscope
