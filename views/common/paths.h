// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <filesystem>

namespace ponderscope {

/// Names of files as Qt and as the core have them.
inline std::filesystem::path path_of(const QString& text) {
    return text.toStdU16String();
}

inline QString path_text(const std::filesystem::path& path) {
    return QString::fromStdU16String(path.u16string());
}

} // namespace ponderscope
