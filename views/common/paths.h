// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFileInfo>
#include <QString>

#include <filesystem>

namespace ponderscope {

/// Converts file names between Qt and the core.
inline std::filesystem::path path_of(const QString& text) {
    return text.toStdU16String();
}

inline QString path_text(const std::filesystem::path& path) {
    return QString::fromStdU16String(path.u16string());
}

/// Whether a trace or folder is on another machine (core/remote/address.h): its name begins with ssh://.
inline bool is_elsewhere(const QString& name) {
    return name.startsWith(QLatin1String("ssh://"));
}

/// "ssh://HOST" of a remote name; empty for a local name.
inline QString machine_of(const QString& name) {
    return is_elsewhere(name) ? name.section(u'/', 0, 2) : QString();
}

/// The name by which the window knows a trace: its absolute path, or its remote name unchanged.
inline QString absolute_name(const QString& name) {
    return is_elsewhere(name) ? name : QFileInfo(name).absoluteFilePath();
}

} // namespace ponderscope
